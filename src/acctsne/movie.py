"""Movies as gif, mp4 or html: of a fit, collected as it runs, and from one map to another."""

from acctsne.pictures.movie import Recorder, write

__all__ = ["Recorder", "write"]
