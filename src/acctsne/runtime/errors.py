"""Errors that are raised once more with another message."""


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
    try:
        return kind(message)
    except TypeError:
        base = kind.__base__
        assert base is not None
        return error_of(base, message)
