"""Where figures are written to, and how they become small."""

from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

IMAGES = Path(__file__).parent.parent / "images"


def save(figure: Figure, name: str) -> None:
    """Write a figure of 10 inches as an image of 1100 pixels."""
    figure.savefig(IMAGES / f"{name}.png", dpi=110)


def shrink(path: Path, pixels: int = 1000) -> None:
    """Make a picture small enough to be kept in the repository: so many pixels, 128 colours."""
    with Image.open(path) as image:
        small = image.convert("RGB")
    small.thumbnail((pixels, pixels))
    # Rare colours count: a single red cross must stay red.
    small.quantize(128, method=Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
