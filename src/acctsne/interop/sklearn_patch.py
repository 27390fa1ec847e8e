"""Put acctsne's TSNE in the place of scikit-learn's, for programs that import that one."""

from acctsne.compat.scikit_learn import TSNE_MODULES
from acctsne.estimator import TSNE

_ORIGINAL = TSNE_MODULES[0].TSNE


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
    for module in TSNE_MODULES:
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
    for module in TSNE_MODULES:
        module.TSNE = _ORIGINAL
