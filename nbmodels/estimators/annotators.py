"""Dawid and Skene's model of several annotators, with noise matrices that may be pooled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from inference.arrays import on_device
from nbmodels.channels import Annotators, CandidateSets
from nbmodels.channels.candidates import pack_candidates
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.annotations import Votes
from nbmodels.data.labelling_functions import VoteSource, read_outputs
from nbmodels.data.labels import Classes, trusted_codes
from nbmodels.data.long_format import distinct
from nbmodels.data.noisy_labels import known_labels
from nbmodels.errors import DataError
from nbmodels.estimators.base import LatentClassModel
from nbmodels.estimators.options import Priors, RandomState, Solver, SolverName, resolved_priors
from nbmodels.estimators.sources import LearnedSource, Part
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import annotators
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.subtypes import Subtypes
from nbmodels.fitting.vote_dependence import (
    VoteTable,
    annotator_model,
    described,
    fitted_to,
    held_out_score,
    learned_dependence,
    tempered_posterior,
)

_NAME = "votes"

#: What ``pooling="auto"`` is: variational fits make too much of priors that are nearly certain.
_AUTO_POOLING: Mapping[str, str] = {"map": "own", "vb": "none", "ml": "none"}


class DawidSkene(LatentClassModel):
    """True classes of tasks, and how far each worker can be trusted (Dawid and Skene 1979).

    Every worker has a noise matrix of their own, which ``pooling`` draws to a simpler one. The
    model takes votes on a task for independent given its class. They seldom are, and its
    probabilities are then far too sure: ``dependence`` tempers them, by what held-out votes show
    and by an assumption about what votes cannot show (:mod:`nbmodels.fitting.vote_dependence`). The
    likeliest class of a task stays the same. With ``solver="ml"`` the model is the paper's: nothing
    is pooled or tempered.

    Parameters:
        pooling: what the workers' noise matrices are drawn to: ``"own"``, each to the matrix of the
            worker's own accuracy, the same for all classes; ``"shared"``, to a matrix that all
            workers share, where that predicts held-out votes no worse; ``"none"``, the pseudo-votes
            of ``priors``. ``"auto"`` is ``"own"`` for ``"map"``, and ``"none"`` for others.
        dependence: correlation of the votes on a task given its class, 0 to 1; 0 takes them for
            independent; ``"auto"`` to learn it. Intervals of :meth:`posterior` are those of
            independent votes.
        subtypes: number of sub-types of each class, each with matrices of its own: workers may then
            agree in what they mistake (EBCC; Li, Rubinstein and Cohn 2019).
        abstain: where given, votes are a matrix of labelling functions' outputs, a row an item and
            a column a function, and this is the value by which a function abstains.
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
        pooling: Literal["auto", "own", "shared", "none"] | bool = "auto",
        dependence: float | Literal["auto"] = "auto",
        subtypes: int = 1,
        abstain: Any = None,
        class_prior: ArrayLike | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.pooling = pooling
        self.dependence = dependence
        self.subtypes = subtypes
        self.abstain = abstain
        self.class_prior = class_prior
        self.priors = priors
        self.classes = classes
        self.solver = solver
        self.random_state = random_state

    @classmethod
    def weak_supervision(cls, abstain: Any = -1, **parameters: Any) -> Self:
        """For the outputs of labelling functions, whose abstentions count, too.

        Time and memory grow with the number of votes.

        Args:
            abstain: value by which a function abstains.
            parameters: others, by name.
        """
        return cls(abstain=abstain, **parameters)

    def fit(self, votes: Any, y: None = None, *, trusted: Any = None) -> Self:
        """Fit to a table of votes.

        Args:
            votes: table with a row a vote and columns ``task``, ``worker`` and ``label``, found by
                these names or usual others (``item``, ``annotator``, ``performer``, ``answer``).
                Of several votes of a worker on a task the last one counts. With ``abstain``, a
                matrix: data frame, array, or a sparse one, whose unstored cells are abstentions.
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
        table, tasks, workers = self._read(votes)
        table.check_labels(self.classes)
        checked = _checked(trusted, tasks)
        classes = Classes.infer(known_labels(table.label), self.classes)
        counts = table.counts(tasks, workers, classes)
        n, k = len(tasks), len(classes)
        types = Subtypes(k, self.subtypes)
        known = np.full(n, -1)
        with computing(self._double(counts.nnz * types.number)):
            model: dict[str, Any] = {PRIOR: types.prior(parameters)}
            parts: dict[str, Any] = {PRIOR: None, _NAME: Annotators.pack(counts)}
            if checked is not None:
                known = trusted_codes(checked, classes, n, None)
                model["trusted"] = CandidateSets.of(types.number)
                parts["trusted"] = pack_candidates(types.allowed(known), types.number)
            data, coded = Data(parts, on_device(np.ones(n))), VoteTable.of(counts, k)

            def fitted(pooling: str) -> FittedModel:
                settings = {**parameters, "pooling": pooling, "n_votes": counts.nnz}
                channel = annotators(len(workers), k, settings)
                learned = () if pooling == "none" else (_NAME,)
                candidate = Candidate({**model, _NAME: channel}, data, learned)
                begin = types.start(candidate, self._rule, self._seed())
                if pooling == "functions" and types.each == 1:
                    candidate, begin = _first_estimate(candidate, known, self._rule, parameters)
                names = types.names(classes.names)
                return joint(candidate, names, n, self._options(), start=begin)

            found = fitted(parameters["pooling"])
            if parameters["pooling"] == "shared":
                found = _better_held_out(found, fitted("none"), coded)
            self.tasks_, self.workers_ = tasks, workers
            by_class = _by_class(counts, k)
            self._task_votes, self._majority = by_class.sum(1), by_class.argmax(1)
            self._votes = coded
            self._finish(self._tempered(found, coded, known >= 0))
        self.classes_ = classes.names
        return self

    def _read(self, votes: Any) -> VoteSource:
        if self.abstain is not None:
            return read_outputs(votes, self.abstain)
        table = Votes.read(votes)
        return VoteSource(table, distinct(_NAME, table.task, "task"), table.workers())

    def _tempered(self, fitted: FittedModel, votes: VoteTable, known: np.ndarray) -> FittedModel:
        """With the dependence of the votes, and responsibilities tempered by it."""
        if fitted.interrupted or (self._rule == "ml" and self.dependence == "auto"):
            return fitted
        model = fitted_to(fitted.fit, votes)
        learned = learned_dependence(model, votes)
        given = self.dependence != "auto"
        correlation = float(self.dependence) if given else learned.correlation
        resp = np.asarray(fitted.fit.resp)
        if correlation > 0:
            # from the votes alone: whether they may be guesses matters to the matrices only
            resp = np.where(known[:, None], resp, tempered_posterior(model, votes, correlation))
        # by a single vote of a doubtful function, an item is rather of a more frequent class
        named = known if self.abstain is None else np.ones(len(known), bool)
        here = described(replace(model, resp=resp), votes, correlation, named)
        here = replace(here, visible=learned.visible, gain=learned.gain)
        return replace(fitted, fit=replace(fitted.fit, resp=resp), vote_dependence=here)

    @property
    def _pooling(self) -> str:
        """``"own"``, ``"shared"`` or ``"none"``."""
        if isinstance(self.pooling, str) and self.pooling != "auto":
            return self.pooling
        return {True: "shared", False: "none", "auto": _AUTO_POOLING[self._rule]}[self.pooling]

    def _validate(self) -> dict[str, Any]:
        parameters = super()._validate()
        if self._pooling != "none" and self._rule == "ml":
            raise DataError("pooling: method 'ml' has no prior to learn; take 'map' or 'vb'")
        if not isinstance(resolved_priors(self.priors).noise_diagonal, int | float):
            raise DataError("noise_diagonal: expected a number; votes have no labels to hold out")
        pooling = self._pooling if self.abstain is None else "functions"
        return {**parameters, "pooling": pooling}

    # As one source among others -----------------------------------------------------------------

    def _source_items(self, values: Any) -> None:
        """None: a row is a vote."""

    def _source_classes(self, values: Any) -> np.ndarray:
        """Classes that were named."""
        return Votes.read(values).label

    def _source_learn(
        self, values: Any, items: np.ndarray, classes: Classes, weights: np.ndarray
    ) -> LearnedSource:
        """The annotators' channel with the votes on ``items``; see :class:`Source`.

        As one source of several, votes are pooled only if ``pooling`` says so, and never tempered.
        """
        parameters = self._validate()
        if self.abstain is not None or self.subtypes > 1:
            raise DataError("abstain, subtypes: not for one source of several")
        if isinstance(self.pooling, str) and self.pooling == "auto":
            parameters["pooling"] = "none"
        table = Votes.read(values)
        self.workers_ = table.workers()
        channel = annotators(len(self.workers_), len(classes), parameters)
        counts = table.counts(items, self.workers_, classes)
        pooled = parameters["pooling"] != "none"
        part = Part(channel, Annotators.pack(counts), pooled=pooled)
        return LearnedSource({_NAME: part}, _VotesOf(self.workers_))

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def label_posterior_(self) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` P(true class | votes) of the tasks."""
        return self._types.summed(super().label_posterior_)

    @property
    def class_prior_(self) -> Float[np.ndarray, " k"]:
        """``(K,)`` shares of the true classes."""
        return self._types.summed(super().class_prior_)

    @property
    def _types(self) -> Subtypes:
        check_is_fitted(self)
        return Subtypes(len(self.fitted_.names) // self.subtypes, self.subtypes)

    @property
    def worker_noise_matrix_(self) -> Float[np.ndarray, "w observed k"]:
        """``(W, K, K)`` ``[worker, observed, true]``, P(observed | true).

        With ``abstain`` the last of ``K + 1`` observed labels is an abstention.
        """
        matrix = np.exp(np.asarray(self.fit_.point[_NAME], float))
        return self._types.averaged(matrix / matrix.sum(1, keepdims=True), super().class_prior_)

    @property
    def noise_matrix_(self) -> Float[np.ndarray, "observed k"]:
        """``(K, K)`` ``[observed, true]`` of an unknown worker: the mean of the workers' priors."""
        return self._types.averaged(self._unknown_worker, super().class_prior_)

    @property
    def _unknown_worker(self) -> Float[np.ndarray, "observed c"]:
        channel: Any = self.fit_.model[_NAME]
        each = np.asarray(channel.prior.concentration, float)
        # under a mode the concentration is one more than the pseudo-votes
        pseudo = each if self._rule == "vb" else np.maximum(each - 1, 1e-12)
        return (pseudo / pseudo.sum(1, keepdims=True)).mean(0)

    @property
    def worker_accuracy_(self) -> pd.DataFrame:
        """Workers with the number of their votes and the expected share of right ones."""
        right = annotator_model(self.fit_).accuracy
        votes = np.bincount(self._votes.worker, minlength=len(self.workers_))
        return pd.DataFrame({"worker": self.workers_, "votes": votes, "accuracy": right})

    def worker_report(self, level: float = 0.9) -> pd.DataFrame:
        """Workers with their accuracy and its interval, a spammer score, and whom they copy.

        Args:
            level: probability inside the intervals; they are those of votes that are independent
                given the class, as those of :meth:`posterior`.

        Returns:
            see :func:`nbmodels.diagnostics.annotators.annotator_report`.
        """
        from nbmodels.diagnostics.annotators import annotator_report, untempered

        model = annotator_model(self.fit_)
        return annotator_report(untempered(model, self._votes), self._votes, self.workers_, level)

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
        table, tasks, workers = self._read(votes)
        classes = Classes(self.classes_)
        counts = table.counts(tasks, workers, classes)
        known = pd.Index(self.workers_).get_indexer(pd.Index(workers))
        model = annotator_model(self.fit_)
        unknown = np.broadcast_to(self._unknown_worker, model.pseudo.shape[1:])
        pseudo = np.where((known >= 0)[:, None, None], model.pseudo[known], unknown)
        dependence = self.fitted_.vote_dependence
        correlation = 0.0 if dependence is None else dependence.correlation
        coded = VoteTable.of(counts, len(classes))
        return self._types.summed(
            tempered_posterior(replace(model, pseudo=pseudo), coded, correlation)
        )

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


def _better_held_out(pooled: FittedModel, plain: FittedModel, votes: VoteTable) -> FittedModel:
    """The pooled fit, unless the plain one predicts held-out votes better."""
    if pooled.interrupted:
        return pooled
    scores = [held_out_score(fitted_to(one.fit, votes), votes) for one in (pooled, plain)]
    return pooled if scores[0] >= scores[1] else plain


def _first_estimate(
    candidate: Candidate, known: np.ndarray, rule: Rule, settings: Mapping[str, Any]
) -> tuple[Candidate, Any]:
    """Labelling functions with a first estimate of their prior, and parameters to begin from."""
    model, data, learned = candidate
    resp = models.initial_responsibilities(model, data)
    assert resp is not None  # of votes
    given = settings["class_prior"]
    shares = None if given is None else on_device(np.asarray(given, float))
    about = model[_NAME], resp, on_device(known >= 0), data.parts[_NAME], shares
    channel, resp = _functions_begin(*about, rule)
    model = {**model, _NAME: channel}
    return Candidate(model, data, learned), models.start(model, resp, data, rule)


@partial(jax.jit, static_argnames="rule")
def _functions_begin(
    channel: Any, resp: Any, held: Any, votes: Any, shares: Any, rule: Rule
) -> tuple[Any, Any]:
    return channel.first_estimate(resp, held, votes, shares, rule)


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
