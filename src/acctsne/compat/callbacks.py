"""scikit-learn's callbacks (`set_callbacks`), in versions that have them."""

from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]


class FitTasks:
    """Tells scikit-learn's callbacks of a fit as a task, and of its iterations as tasks within.

    It is a callback of ours: where one of scikit-learn's returns True, it does, which ends the fit.
    """

    def __init__(self, estimator: Any, X: Any) -> None:
        self._estimator = estimator
        self._X = X
        self._left = -(-int(estimator.max_iter) // int(estimator.callback_every))
        self._root = estimator._init_callback_context(max_subtasks=self._left)
        self._root.call_on_fit_task_begin(estimator=estimator, X=X)
        self._task: Any = None

    @classmethod
    def of(cls, estimator: Any, X: Any) -> "FitTasks | None":
        """Begin the task of the fit if callbacks of scikit-learn's were set."""
        return cls(estimator, X) if getattr(estimator, "_skl_callbacks", ()) else None

    def begin(self) -> None:
        """Begin the next iterations."""
        if self._left > 0:
            self._left -= 1
            self._task = self._root.subcontext(task_name="iterations")
            self._task.call_on_fit_task_begin(estimator=self._estimator, X=self._X)

    def __call__(self, iteration: int, kl: float, positions: Any) -> bool:
        """End the present iterations and begin the next, unless the fit is to stop."""
        attributes = {"embedding_": positions, "kl_divergence_": kl, "n_iter_": iteration}
        stop = self._end(attributes)
        if not stop:
            self.begin()
        return stop

    def _end(self, attributes: dict[str, Any]) -> bool:
        task, self._task = self._task, None
        return bool(
            task.call_on_fit_task_end(
                estimator=self._estimator, X=self._X, reconstruction_attributes=attributes
            )
        )

    def finish(self) -> None:
        """End the iterations since the last report, if there are any, and the fit."""
        if self._task is not None:
            self._end({})
        self._root.call_on_fit_task_end(
            estimator=self._estimator, X=self._X, reconstruction_attributes={}
        )
