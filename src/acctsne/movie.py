"""Movies of the optimisation: frames collected while a fit runs, written as gif, mp4 or html."""

from acctsne.pictures.movie import Recorder

__all__ = ["Recorder"]
