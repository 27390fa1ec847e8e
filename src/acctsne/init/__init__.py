"""Where the points of a map start.

Every function returns an array that `TSNE(init=...)` takes: its first axis has the standard
deviation 1e-4, and no two points are in the same place. All but `random` are deterministic.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from acctsne.affinities.affinities import Affinities, check_affinities
from acctsne.affinities.inputs import check_data
from acctsne.init.layouts import finished, random_layout
from acctsne.init.multilevel_layout import multilevel_coordinates
from acctsne.init.spectral_layout import spectral_coordinates
from acctsne.neighbors.principal_components import principal_components
from acctsne.runtime.checks import check_integer, check_layout_dtype, check_n_samples
from acctsne.runtime.threads import effective_threads

# Far more than a layout can have in any memory.
MAX_COMPONENTS = 2**31 - 1

__all__ = ["multilevel", "pca", "random", "spectral"]


def pca(
    X: Any,
    n_components: int = 2,
    *,
    dtype: npt.DTypeLike = np.float32,
    n_jobs: int | None = None,
) -> npt.NDArray[Any]:
    """Lay out samples by their leading principal components.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data; a sparse matrix is never made dense as a whole.
    n_components : int, default=2
        Dimension of the layout. Axes beyond those that X has are noise, a hundredth of the first
        one's size.
    dtype : numpy.float32 or numpy.float64, default=numpy.float32
        Precision of the result.
    n_jobs : int, default=None
        Threads; None for all cores.

    Returns
    -------
    layout : ndarray of shape (n_samples, n_components)
        Each axis points so that its largest loading is positive, as in scikit-learn.

    Notes
    -----
    ``TSNE(init="pca")`` starts from this layout. With more than 256 features it takes what the
    neighbour search has found on the way, which differs by less than 0.1 %.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import init
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> layout = init.pca(X)
    >>> layout.shape
    (100, 2)
    >>> bool(np.isclose(layout[:, 0].std(), 1e-4))
    True
    """
    _check_n_components(n_components)
    checked_dtype = check_layout_dtype(dtype)
    threads = effective_threads(n_jobs)
    coordinates = principal_components(check_data(X), n_components, threads)
    return finished(coordinates, checked_dtype, threads)


def random(
    n_samples: int,
    n_components: int = 2,
    *,
    random_state: int | np.random.RandomState | None = None,
    dtype: npt.DTypeLike = np.float32,
) -> npt.NDArray[Any]:
    """Lay out samples by a normal distribution.

    Parameters
    ----------
    n_samples : int
        How many.
    n_components : int, default=2
        Dimension of the layout.
    random_state : int, RandomState instance or None, default=None
        Seed; an int gives the same layout on every call.
    dtype : numpy.float32 or numpy.float64, default=numpy.float32
        Precision of the result.

    Returns
    -------
    layout : ndarray of shape (n_samples, n_components)
        The layout, with standard deviation 1e-4 along each axis.

    Examples
    --------
    >>> from acctsne import init
    >>> init.random(100, random_state=0).shape
    (100, 2)
    """
    _check_n_components(n_components)
    checked_dtype = check_layout_dtype(dtype)
    check_integer("n_samples", n_samples)
    if n_samples < 1:
        raise ValueError(f"n_samples must be positive; got {n_samples}")
    check_n_samples(n_samples, "the layout")
    drawn_from = check_random_state(random_state)
    return random_layout((n_samples, n_components), drawn_from, checked_dtype)


def spectral(
    affinities: Affinities,
    n_components: int = 2,
    *,
    dtype: npt.DTypeLike = np.float32,
) -> npt.NDArray[Any]:
    """Lay out samples by the slowest modes of a random walk along their affinities.

    These are the Laplacian eigenmaps of the neighbour graph. Parts of the graph that no affinity
    connects are laid out each for itself and placed beside each other.

    Parameters
    ----------
    affinities : Affinities
        The affinities that are to be embedded.
    n_components : int, default=2
        Dimension of the layout.
    dtype : numpy.float32 or numpy.float64, default=numpy.float32
        Precision of the result.

    Returns
    -------
    layout : ndarray of shape (n_samples, n_components)
        Each axis points so that its longer tail is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import Affinities, init
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> init.spectral(Affinities.from_data(X, perplexity=10)).shape
    (100, 2)
    """
    check_affinities(affinities)
    _check_n_components(n_components)
    checked_dtype = check_layout_dtype(dtype)
    return finished(spectral_coordinates(affinities.to_scipy(), n_components), checked_dtype)


def multilevel(
    affinities: Affinities,
    n_components: int = 2,
    *,
    dtype: npt.DTypeLike = np.float32,
    n_jobs: int | None = None,
) -> npt.NDArray[Any]:
    """Embed a tenth of the samples, and lay out the others by their neighbours there.

    For very many samples whose principal components say little, or that have none, such as a
    matrix of distances: it leads where the spectral layout leads, with much less work.

    Parameters
    ----------
    affinities : Affinities
        The affinities that are to be embedded.
    n_components : int, default=2
        Dimension of the layout.
    dtype : numpy.float32 or numpy.float64, default=numpy.float32
        Precision of the result.
    n_jobs : int, default=None
        Threads; None for all cores.

    Returns
    -------
    layout : ndarray of shape (n_samples, n_components)
        The same for any number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import Affinities, init
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> init.multilevel(Affinities.from_data(X, perplexity=10)).shape
    (100, 2)
    """
    check_affinities(affinities)
    _check_n_components(n_components)
    checked_dtype = check_layout_dtype(dtype)
    threads = effective_threads(n_jobs)
    coordinates = multilevel_coordinates(affinities.to_scipy(), n_components, threads)
    return finished(coordinates, checked_dtype)


def _check_n_components(n_components: Any) -> None:
    check_integer("n_components", n_components)
    if not 1 <= n_components <= MAX_COMPONENTS:
        raise ValueError(f"n_components must be between 1 and {MAX_COMPONENTS}; got {n_components}")
