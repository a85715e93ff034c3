"""Truth from several annotators: Dawid and Skene's model, pooled where votes are few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from nbmodels.channels import Annotators, TrustedLabels
from nbmodels.channels.transition import pack_labels
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.annotations import Votes
from nbmodels.data.labels import Classes, trusted_codes
from nbmodels.data.long_format import distinct
from nbmodels.data.validation import check_nonnegative
from nbmodels.errors import DataError
from nbmodels.estimators.labels import known_labels
from nbmodels.estimators.latent import LatentClassifier, with_inherited_parameters
from nbmodels.estimators.sources import Part

_NAME = "votes"


@with_inherited_parameters
class DawidSkene(LatentClassifier):
    """True classes of tasks, and how far each worker can be trusted (Dawid and Skene 1979).

    Every worker has a noise matrix of their own. With ``pooling`` the matrices are drawn around one
    that all workers share, and both it and how much workers differ are learned: a worker with few
    votes is taken for an ordinary one.

    Parameters:
        pooling: learn the prior of the workers' noise matrices; only for ``"map"`` and ``"vb"``.
        noise_alpha: wrong pseudo-votes of each worker for each class, shared out evenly; where
            the prior is learned, only its beginning.
        noise_diagonal: right pseudo-votes of each worker for each class.
    """

    attributes_doc = """
    tasks_: ``(N,)`` ids of the tasks, sorted.
    workers_: ``(W,)`` ids of the workers, sorted.
    worker_noise_matrix_: ``(W, K, K)`` ``[worker, observed, true]``, columns sum to one.
    noise_matrix_: ``(K, K)`` that of a worker of whom nothing is known.
    worker_accuracy_: data frame: worker, votes, share of right votes to be expected.
    """

    def __init__(
        self,
        *,
        pooling: bool = False,
        noise_alpha: float = 1.0,
        noise_diagonal: float = 2.0,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.pooling = pooling
        self.noise_alpha = noise_alpha
        self.noise_diagonal = noise_diagonal

    def fit(self, votes: Any, y: None = None, *, trusted: Any = None) -> Self:
        """Fit to a table of votes.

        Args:
            votes: data frame with a row a vote and columns ``task``, ``worker``, ``label``, or any
                table with these three columns in this order. Several votes of a worker on a task
                all count.
            y: not used.
            trusted: mapping or series from some tasks to their checked classes.

        Raises:
            DataError: bad input, naming the row.

        Warns:
            IdentifiabilityWarning: the workers' mean noise matrix is not diagonally dominant.
            NotConvergedWarning: the iteration did not converge.
        """
        self._check_parameters()
        table = Votes.read(votes)
        tasks, workers = distinct(_NAME, table.task, "task"), table.workers()
        checked = _checked(trusted, tasks)
        labels = known_labels(table.label)
        classes = Classes.infer(labels, self.classes)
        counts = table.counts(tasks, workers, classes)
        n, k = len(tasks), len(classes)
        with jax.enable_x64(self._double(counts.nnz * k)):
            channel = Annotators.of(len(workers), k, None, self.noise_alpha, self.noise_diagonal)
            model = {PRIOR: self._prior(k), _NAME: channel}
            parts: dict[str, Any] = {PRIOR: None, _NAME: Annotators.pack(counts)}
            if checked is not None:
                model["trusted"] = TrustedLabels.of(k)
                parts["trusted"] = pack_labels(trusted_codes(checked, classes, n, None), k)
            self._solve(model, Data(parts, jnp.ones(n)), classes, n)
        self.tasks_, self.workers_ = tasks, workers
        by_class = _by_class(counts, k)
        self._task_votes, self._majority = by_class.sum(1), by_class.argmax(1)
        self._worker_votes = np.bincount(counts.indices // k, counts.data, len(workers))
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("noise_alpha", "noise_diagonal"):
            check_nonnegative(name, getattr(self, name))
        if self.pooling and self.method == "ml":
            raise DataError("pooling: method='ml' has no prior to learn; take 'map' or 'vb'")

    def _pooled(self) -> tuple[str, ...]:
        return (_NAME,) if self.pooling else ()

    # As one source among others -----------------------------------------------------------------

    def _source_items(self, values: Any) -> None:
        """None: a row is a vote."""

    def _source_classes(self, values: Any) -> np.ndarray:
        """Classes that were named."""
        return Votes.read(values).label

    def _source_learn(
        self, values: Any, items: np.ndarray, classes: Classes, weights: np.ndarray
    ) -> dict[str, Part]:
        """The annotators' channel with the votes on ``items``; see :class:`Source`."""
        DawidSkene._check_parameters(self)
        table = Votes.read(values)
        self.workers_ = table.workers()
        alpha, diagonal = self.noise_alpha, self.noise_diagonal
        channel = Annotators.of(len(self.workers_), len(classes), None, alpha, diagonal)
        counts = table.counts(items, self.workers_, classes)
        return {_NAME: Part(channel, Annotators.pack(counts), pooled=self.pooling)}

    def _source_apply(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        """Votes on new items by the workers of the fit; see :class:`Source`."""
        counts = Votes.read(values).counts(items, self.workers_, classes)
        return {_NAME: Annotators.pack(counts)}

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def worker_noise_matrix_(self) -> np.ndarray:
        """``(W, K, K)`` ``[worker, observed, true]``, P(observed | true)."""
        check_is_fitted(self)
        matrix = np.exp(np.asarray(self.fit_.point[_NAME], float))
        return matrix / matrix.sum(1, keepdims=True)

    @property
    def noise_matrix_(self) -> np.ndarray:
        """``(K, K)`` ``[observed, true]`` of a worker of whom nothing is known: the prior's."""
        check_is_fitted(self)
        one = np.asarray(self.fit_.model[_NAME].prior.concentration[0], float)
        # under a mode the concentration is one more than the pseudo-votes
        pseudo = one if self.method == "vb" else np.maximum(one - 1, 1e-12)
        return pseudo / pseudo.sum(0)

    @property
    def worker_accuracy_(self) -> pd.DataFrame:
        """Workers with the number of their votes and the share of right ones to be expected."""
        matrix = self.worker_noise_matrix_
        right = np.einsum("wkk,k->w", matrix, self.class_prior_)
        votes = self._worker_votes.astype(int)
        return pd.DataFrame({"worker": self.workers_, "votes": votes, "accuracy": right})

    def corrected_labels(self) -> pd.DataFrame:
        """The tasks with the suggested class, its probability, and what most workers said.

        Returns:
            A frame with columns ``task``, ``votes``, ``majority``, ``suggested``, ``p_suggested``
            and ``rank`` (1 for the least certain task).
        """
        resp = self.label_posterior_
        best = resp.max(1)
        return pd.DataFrame(
            {
                "task": self.tasks_,
                "votes": self._task_votes.astype(int),
                "majority": self.classes_[self._majority],
                "suggested": self.classes_[resp.argmax(1)],
                "p_suggested": best,
                "rank": pd.Series(best).rank(method="first").astype(int),
            }
        )

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, votes: Any = None) -> pd.DataFrame:
        """P(true class | votes) of tasks, a row a task, a column a class.

        Args:
            votes: new votes, as :meth:`fit` takes them; the fitted ones where None. A worker who
                did not occur in the fit has the noise matrix of an unknown one.
        """
        check_is_fitted(self)
        if votes is None:
            return pd.DataFrame(self.label_posterior_, self.tasks_, self.classes_)
        table = Votes.read(votes)
        tasks, workers = distinct(_NAME, table.task, "task"), table.workers()
        classes = Classes(self.classes_)
        with jax.enable_x64(self._double_):
            counts = table.counts(tasks, workers, classes)
            known = pd.Index(self.workers_).get_indexer(pd.Index(workers))
            learnt = np.asarray(self.fit_.point[_NAME], float)
            unknown = np.log(np.maximum(self.noise_matrix_, np.finfo(float).tiny))
            likelihood_params = np.where((known >= 0)[:, None, None], learnt[known], unknown)
            channel = self.fit_.model[_NAME]
            found = channel.log_likelihood(jnp.asarray(likelihood_params), Annotators.pack(counts))
            joint = np.asarray(found.table, float) + self.class_log_prior_
        resp = np.exp(joint - joint.max(1, keepdims=True))
        return pd.DataFrame(resp / resp.sum(1, keepdims=True), tasks, self.classes_)

    def predict(self, votes: Any = None) -> pd.Series:
        """Likeliest class of tasks, by their ids."""
        resp = self.predict_proba(votes)
        return pd.Series(self.classes_[resp.to_numpy().argmax(1)], resp.index, name="label")


def _checked(trusted: Any, tasks: np.ndarray) -> np.ndarray | None:
    """One checked class a task, None where unchecked."""
    if trusted is None:
        return None
    if not isinstance(trusted, Mapping | pd.Series):
        raise DataError("trusted: expected a mapping or series from tasks to classes")
    index = {task: i for i, task in enumerate(tasks.tolist())}
    out = np.full(len(tasks), None, object)
    for task, label in trusted.items():
        if task not in index:
            raise DataError(f"trusted: there is no vote on task {task!r}")
        out[index[task]] = label
    return out


def _by_class(counts: Any, k: int) -> np.ndarray:
    """``(N, K)`` number of votes for each class; the first of several largest is the majority."""
    n = counts.shape[0]
    row = np.repeat(np.arange(n), np.diff(counts.indptr))
    return np.bincount(row * k + counts.indices % k, counts.data, n * k).reshape(n, k)
