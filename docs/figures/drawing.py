"""Where figures are written to."""

from pathlib import Path

from matplotlib.figure import Figure

IMAGES = Path(__file__).parent.parent / "images"


def save(figure: Figure, name: str) -> None:
    """Write a figure of 10 inches as an image of 1100 pixels."""
    figure.savefig(IMAGES / f"{name}.png", dpi=110)
