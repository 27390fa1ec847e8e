"""Errors that are raised once more with another message."""

from contextlib import suppress


def error_of(kind: type[BaseException], message: str) -> BaseException:
    """Make an error of a type, or of the nearest base of it that takes a message alone.

    Examples
    --------
    >>> error_of(TypeError, "slice 2: no numbers")
    TypeError('slice 2: no numbers')

    The encoding's own error takes five arguments:

    >>> error_of(UnicodeDecodeError, "labels.txt: not text")
    UnicodeError('labels.txt: not text')
    """
    bases = [base for base in kind.__mro__ if issubclass(base, BaseException)]
    for base in bases[:-1]:
        # A type of somebody's own may refuse a message by any error.
        with suppress(Exception):
            return base(message)
    return BaseException(message)
