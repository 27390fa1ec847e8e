"""Put acctsne's TSNE in the place of scikit-learn's, for programs that import that one."""

import sklearn.manifold
import sklearn.manifold._t_sne

from acctsne._tsne import TSNE

# Both names by which programs import it.
_MODULES = (sklearn.manifold, sklearn.manifold._t_sne)
_ORIGINAL = sklearn.manifold.TSNE


def patch_sklearn() -> None:
    """Make `sklearn.manifold.TSNE` be `acctsne.TSNE` from here on.

    Every later ``from sklearn.manifold import TSNE``, in the user's code and inside libraries such
    as scanpy, gets acctsne's class, with the same parameters. A name imported before keeps what it
    was. Calling it twice does no harm.

    Examples
    --------
    >>> import acctsne
    >>> acctsne.patch_sklearn()
    >>> from sklearn.manifold import TSNE
    >>> TSNE is acctsne.TSNE
    True
    >>> acctsne.unpatch_sklearn()
    """
    for module in _MODULES:
        module.TSNE = TSNE


def unpatch_sklearn() -> None:
    """Undo `patch_sklearn`.

    Examples
    --------
    >>> import acctsne
    >>> acctsne.patch_sklearn()
    >>> acctsne.unpatch_sklearn()
    >>> from sklearn.manifold import TSNE
    >>> TSNE is acctsne.TSNE
    False
    """
    for module in _MODULES:
        module.TSNE = _ORIGINAL
