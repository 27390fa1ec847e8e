"""scikit-learn's callbacks (`set_callbacks`), in versions that have them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method as it is."""
        return method


if TYPE_CHECKING:
    from acctsne._tsne import TSNE

__all__ = ["CallbackSupportMixin", "FitTasks", "has_callbacks", "with_callbacks"]


class FitTasks:
    """Tells scikit-learn's callbacks of a fit as one task a report, each some iterations long.

    It is a callback of ours: returning True, as a callback of scikit-learn's may, ends the fit.
    """

    def __init__(self, estimator: "TSNE", X: Any, reports: int) -> None:
        self._estimator = estimator
        self._X = X
        self._root = estimator._init_callback_context(max_subtasks=reports)
        self._root.call_on_fit_task_begin(estimator=estimator, X=X)
        self._begin()

    def _begin(self) -> None:
        self._task = self._root.subcontext(task_name="iterations")
        self._task.call_on_fit_task_begin(estimator=self._estimator, X=self._X)

    def __call__(self, iteration: int, kl: float, positions: Any) -> bool:
        """End the present task and begin the next."""
        stop = self._task.call_on_fit_task_end(
            estimator=self._estimator,
            X=self._X,
            reconstruction_attributes=lambda: {
                "embedding_": positions,
                "kl_divergence_": kl,
                "n_iter_": iteration,
            },
        )
        if len(self._root._children_map) < (self._root.max_subtasks or 0):
            self._begin()
        return bool(stop)

    def finish(self) -> None:
        """End the whole fit."""
        self._root.call_on_fit_task_end(estimator=self._estimator, X=self._X)


def has_callbacks(estimator: Any) -> bool:
    """Whether callbacks of scikit-learn's were set."""
    return bool(getattr(estimator, "_skl_callbacks", ()))
