"""A map as one HTML file that needs no network: pan, zoom, hover, search, select, recolour."""

from acctsne.pictures.html import write

__all__ = ["write"]
