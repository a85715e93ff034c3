"""Dawid and Skene's model of several annotators, with noise matrices that may be pooled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from nbmodels.channels import Annotators, TrustedLabels
from nbmodels.channels.transition import pack_labels
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.annotations import Votes
from nbmodels.data.labels import Classes, trusted_codes
from nbmodels.data.long_format import distinct
from nbmodels.data.noisy_labels import known_labels
from nbmodels.errors import DataError
from nbmodels.estimators.base import LatentClassModel
from nbmodels.estimators.options import Priors, RandomState, Solver, SolverName, resolved_priors
from nbmodels.estimators.sources import LearnedSource, Part
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import annotators, class_prior
from nbmodels.fitting.scores import Candidate

_NAME = "votes"


class DawidSkene(LatentClassModel):
    """True classes of tasks, and how far each worker can be trusted (Dawid and Skene 1979).

    Every worker has a noise matrix of their own. With ``pooling`` the matrices are drawn around one
    that all workers share, and both it and how much workers differ are learned: a worker with few
    votes is taken for an ordinary one.

    Parameters:
        pooling: learn the prior of the workers' noise matrices; only for ``"map"`` and ``"vb"``.
            The pseudo-votes of ``priors`` are then only where that begins.
        class_prior: ``(K,)`` known shares of the true classes; None to learn them.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`
            with the limits of the iteration.
        random_state: seed of folds and restarts.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the items.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        tasks_: ``(N,)`` ids of the tasks, sorted.
        workers_: ``(W,)`` ids of the workers, sorted.
        worker_noise_matrix_: ``(W, K, K)`` ``[worker, observed, true]``, columns sum to one.
        noise_matrix_: ``(K, K)`` that of a worker of whom nothing is known.
        worker_accuracy_: data frame: worker, votes, expected share of right votes.
    """

    def __init__(
        self,
        *,
        pooling: bool = False,
        class_prior: ArrayLike | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.pooling = pooling
        self.class_prior = class_prior
        self.priors = priors
        self.classes = classes
        self.solver = solver
        self.random_state = random_state

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
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``.

        Warns:
            IdentifiabilityWarning: the workers' mean noise matrix is not diagonally dominant.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        table = Votes.read(votes)
        tasks, workers = distinct(_NAME, table.task, "task"), table.workers()
        checked = _checked(trusted, tasks)
        classes = Classes.infer(known_labels(table.label), self.classes)
        counts = table.counts(tasks, workers, classes)
        n, k = len(tasks), len(classes)
        with jax.enable_x64(self._double(counts.nnz * k)):
            channel = annotators(len(workers), k, parameters)
            model = {PRIOR: class_prior(k, parameters), _NAME: channel}
            parts: dict[str, Any] = {PRIOR: None, _NAME: Annotators.pack(counts)}
            if checked is not None:
                model["trusted"] = TrustedLabels.of(k)
                parts["trusted"] = pack_labels(trusted_codes(checked, classes, n, None), k)
            learned = (_NAME,) if self.pooling else ()
            candidate = Candidate(model, Data(parts, jnp.ones(n)), learned)
            fitted = joint(candidate, classes.names, n, self._options())
        self.tasks_, self.workers_ = tasks, workers
        by_class = _by_class(counts, k)
        self._task_votes, self._majority = by_class.sum(1), by_class.argmax(1)
        self._worker_votes = np.bincount(counts.indices // k, counts.data, len(workers))
        return self._finish(fitted)

    def _validate(self) -> dict[str, Any]:
        parameters = super()._validate()
        if self.pooling and self._rule == "ml":
            raise DataError("pooling: method 'ml' has no prior to learn; take 'map' or 'vb'")
        if not isinstance(resolved_priors(self.priors).noise_diagonal, int | float):
            raise DataError("noise_diagonal: expected a number; votes have no labels to hold out")
        return parameters

    # As one source among others -----------------------------------------------------------------

    def _source_items(self, values: Any) -> None:
        """None: a row is a vote."""

    def _source_classes(self, values: Any) -> np.ndarray:
        """Classes that were named."""
        return Votes.read(values).label

    def _source_learn(
        self, values: Any, items: np.ndarray, classes: Classes, weights: np.ndarray
    ) -> LearnedSource:
        """The annotators' channel with the votes on ``items``; see :class:`Source`."""
        parameters = self._validate()
        table = Votes.read(values)
        self.workers_ = table.workers()
        channel = annotators(len(self.workers_), len(classes), parameters)
        counts = table.counts(items, self.workers_, classes)
        part = Part(channel, Annotators.pack(counts), pooled=self.pooling)
        return LearnedSource({_NAME: part}, _VotesOf(self.workers_))

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def worker_noise_matrix_(self) -> Float[np.ndarray, "w observed k"]:
        """``(W, K, K)`` ``[worker, observed, true]``, P(observed | true)."""
        matrix = np.exp(np.asarray(self.fit_.point[_NAME], float))
        return matrix / matrix.sum(1, keepdims=True)

    @property
    def noise_matrix_(self) -> Float[np.ndarray, "observed k"]:
        """``(K, K)`` ``[observed, true]`` of a worker of whom nothing is known: the prior's."""
        channel: Any = self.fit_.model[_NAME]
        one = np.asarray(channel.prior.concentration[0], float)
        # under a mode the concentration is one more than the pseudo-votes
        pseudo = one if self._rule == "vb" else np.maximum(one - 1, 1e-12)
        return pseudo / pseudo.sum(0)

    @property
    def worker_accuracy_(self) -> pd.DataFrame:
        """Workers with the number of their votes and the expected share of right ones."""
        matrix = self.worker_noise_matrix_
        right = np.einsum("wkk,k->w", matrix, self.class_prior_)
        votes = self._worker_votes.astype(int)
        return pd.DataFrame({"worker": self.workers_, "votes": votes, "accuracy": right})

    def corrected_labels(self) -> pd.DataFrame:
        """The tasks with majority vote and suggested class, the most doubtful ranked first.

        Returns:
            A frame with the columns that every estimator's has, of which ``row`` is the task and
            ``given`` the majority of its votes (``p_wrong`` is the probability that the majority is
            wrong), and ``votes``, their number. See :meth:`NoisyBernoulliNB.corrected_labels`.
        """
        check_is_fitted(self)
        given = self.classes_[self._majority]
        votes = {"votes": self._task_votes.astype(int)}
        return self._corrected(self.tasks_, given, self._majority, votes)

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, votes: Any = None) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` P(true class | votes) of tasks, in the order of their sorted ids.

        Args:
            votes: new votes, as :meth:`fit` takes them; the fitted ones, whose tasks are
                ``tasks_``, where None. A worker who did not occur in the fit has the noise matrix
                of an unknown one.
        """
        check_is_fitted(self)
        if votes is None:
            return self.label_posterior_
        table = Votes.read(votes)
        tasks, workers = distinct(_NAME, table.task, "task"), table.workers()
        classes = Classes(self.classes_)
        with jax.enable_x64(self.fitted_.double):
            counts = table.counts(tasks, workers, classes)
            known = pd.Index(self.workers_).get_indexer(pd.Index(workers))
            learned = np.asarray(self.fit_.point[_NAME], float)
            unknown = np.log(np.maximum(self.noise_matrix_, np.finfo(float).tiny))
            params = np.where((known >= 0)[:, None, None], learned[known], unknown)
            channel: Any = self.fit_.model[_NAME]
            found = channel.log_likelihood(jnp.asarray(params), Annotators.pack(counts))
            return softmax(np.asarray(found.table, float) + self.class_log_prior_, 1)

    def predict(self, votes: Any = None) -> np.ndarray:
        """``(N,)`` likeliest class of tasks, in the order of their sorted ids."""
        best = self.predict_proba(votes).argmax(1)
        return self.classes_[best]


@dataclass(frozen=True)
class _VotesOf:
    """Packs votes on new items by the workers of a fit."""

    workers: np.ndarray

    def __call__(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        counts = Votes.read(values).counts(items, self.workers, classes)
        return {_NAME: Annotators.pack(counts)}


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
