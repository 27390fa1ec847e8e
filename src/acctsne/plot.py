"""Pictures of maps that need no tuning, from a hundred points to ten million."""

from acctsne.pictures.plot import LivePlot, save, scatter

__all__ = ["LivePlot", "save", "scatter"]
