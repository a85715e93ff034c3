"""Dawid and Skene's model of several annotators, with noise matrices that may be pooled."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nbmodels.channels import OneCoinAnnotators
from nbmodels.channels.ordered_annotators import POINTS
from nbmodels.core.jax_settings import computing
from nbmodels.data.annotations import Votes, trusted_tasks, workers_spelt_alike
from nbmodels.data.labelling_functions import VoteSource, check_abstentions, read_outputs
from nbmodels.data.labels import Classes, check_marker, trusted_codes
from nbmodels.data.noisy_labels import known_labels
from nbmodels.errors import (
    Caution,
    DataError,
    IdentifiabilityWarning,
    NbmodelsWarning,
    PosteriorWarning,
    issue,
)
from nbmodels.estimators.annotators_training import VotesTraining, weighted
from nbmodels.estimators.base import LatentClassModel
from nbmodels.estimators.options import Priors, RandomState, Solver, SolverName, resolved_priors
from nbmodels.estimators.ordered_votes import (
    draws_by_class,
    graders_caution,
    in_order,
    ordered_parameters,
    rank_of,
    used_grades,
)
from nbmodels.estimators.sources import Items, LearnedSource
from nbmodels.estimators.votes_source import VOTES as _NAME
from nbmodels.estimators.votes_source import learned_votes, votes_of
from nbmodels.fitting.annotator_fits import (
    ALIKE,
)
from nbmodels.fitting.copied_votes import MOST_UNEVEN, find_copies
from nbmodels.fitting.subtypes import Subtypes
from nbmodels.fitting.vote_dependence import (
    VoteTable,
    annotator_model,
    tempered_posterior,
)

#: What ``pooling="auto"`` is: variational fits make too much of priors that are nearly certain.
_AUTO_POOLING: Mapping[str, str] = {"map": "own", "vb": "none", "ml": "none"}

#: Numbers of workers, and of their votes, of which accuracies have intervals of posterior draws;
#: those of two rest on the priors alone.
_FEWEST_WORKERS, _FEW_WORKERS, _FEW_VOTES = 3, 5, 2_000


#: Of two classes and two tests five numbers are unknown, and three can be counted.
_TWO_WORKERS = (
    "votes of two workers do not show how often each of them is right (Hui and Walter 1980): their "
    "accuracies, the shares of the classes and all intervals rest on the priors; votes of a third "
    "one show it, or checked classes of some tasks (trusted=), or features, beside which a table's "
    "estimator takes these votes (votes=)"
)


class DawidSkene(LatentClassModel):
    """True classes of tasks, and how far each worker can be trusted (Dawid and Skene 1979).

    Every worker has a noise matrix of their own, which ``pooling`` draws to a simpler one. The
    model takes votes on a task for independent given its class. They seldom are, and its
    probabilities are then far too sure: ``dependence`` tempers them, by what votes show
    (:mod:`nbmodels.fitting.item_effects`) and by an assumption about what votes cannot show, the
    weaker the surer items and pairs of workers show that they are independent
    (:mod:`nbmodels.fitting.vote_dependence`). Where votes are fewer than cells of the matrices, as
    of many classes, each task is judged by what votes on other tasks say of its workers. The
    likeliest class is that of the task's votes under the workers' matrices. Under
    ``pooling="own"`` all votes on a task may be guesses: such tasks teach the matrices nothing, and
    with ``dependence=0`` their votes say nothing of the class. The shares of the classes, unless
    given or shown by ``trusted`` tasks, are held near those of the votes
    (:func:`nbmodels.fitting.vote_shares.held_near`): of few tasks one class might take all. With
    ``solver="ml"`` the model is the paper's: nothing is pooled or tempered.

    Parameters:
        pooling: what the workers' noise matrices are drawn to: ``"own"``, each to the matrix of the
            worker's own accuracy, the same for all classes, and of few votes to the errors of the
            crowd where these predict each worker's; ``"shared"``, to a matrix that all workers
            share, where that predicts held-out votes no worse; ``"none"``, the pseudo-votes
            of ``priors``. ``"auto"`` is ``"own"`` for ``"map"``, and ``"none"`` for others; where
            workers hardly vote on the same tasks, so that votes do not show who is right, it takes
            all workers to be alike, and tasks keep their votes.
        dependence: correlation of the votes on a task given its class, 0 to 1; 0 takes them for
            independent; ``"auto"`` to learn it; ``"shown"`` without the assumption, for votes that
            no cue misleads together. On eleven real crowds ``"shown"`` was 3 to 22 points too sure.
            Intervals of :meth:`posterior` are those of independent votes.
        subtypes: number of sub-types of each class, each with matrices of its own: workers may then
            agree in what they mistake (EBCC; Li, Rubinstein and Cohn 2019).
        ordered: whether classes are grades of an ordered scale. A worker then has a severity, a
            scale of errors and a share of lapses in the place of a free matrix
            (:class:`~nbmodels.channels.OrderedAnnotators`). The order is that of ``classes``, of an
            ordered Categorical, or of numbers.
        abstain: where given, votes are a matrix of labelling functions' outputs, a row an item and
            a column a function, and this is the value by which a function abstains, beside nulls;
            NaN where there is no other.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`
            with the limits of the iteration.
        random_state: seed of restarts and posterior draws; None takes others each time.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the items.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        tasks_: ``(N,)`` ids of the tasks, sorted; with ``abstain`` in the order of the rows.
        workers_: ``(W,)`` ids of the workers, sorted.
        worker_noise_matrix_: ``(W, K, K)`` ``[worker, observed, true]``, columns sum to one.
        noise_matrix_: ``(K, K)`` that of a worker of whom nothing is known.
        worker_accuracy_: data frame: worker, votes, expected share of right votes.

    Examples:
        >>> import numpy as np
        >>> import pandas as pd
        >>> from nbmodels import DawidSkene
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 60), np.array(["ant", "bee"])
        >>> task, right = np.repeat(np.arange(60), 4), [0.95, 0.9, 0.85, 0.5]
        >>> given = np.where(rng.random(240) < np.tile(right, 60), truth[task], 1 - truth[task])
        >>> votes = pd.DataFrame({"task": task, "worker": list("abcd") * 60, "label": names[given]})
        >>> model = DawidSkene().fit(votes)
        >>> model.worker_accuracy_.round(1)  # the last one guesses
          worker  votes  accuracy
        0      a     60       0.9
        1      b     60       0.8
        2      c     60       0.8
        3      d     60       0.5
        >>> print((model.corrected_labels()["suggested"] == names[truth]).sum())  # of 60
        59
    """

    _is_source: ClassVar[bool] = True

    #: Whether a fit is compared with graders on an ordered scale, where labels may be grades.
    _beside_graders: bool = True

    #: Whether votes are the only evidence, see :class:`VotesTraining`.
    _sole: bool = True

    def __init__(
        self,
        *,
        pooling: Literal["auto", "own", "shared", "none"] | bool = "auto",
        dependence: float | Literal["auto", "shown"] = "auto",
        subtypes: int = 1,
        ordered: bool = False,
        abstain: Any = None,
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.pooling = pooling
        self.dependence = dependence
        self.subtypes = subtypes
        self.ordered = ordered
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
            abstain: value by which a function abstains; None where nulls alone are abstentions.
            parameters: others, by name.
        """
        return cls(abstain=np.nan if abstain is None else abstain, **parameters)

    def fit(self, votes: Any, y: None = None, *, trusted: Any = None) -> Self:
        """Fit to a table of votes.

        Args:
            votes: table with a row a vote and columns ``task``, ``worker`` and ``label``, found by
                these names or usual others (``item``, ``image``, ``text``; ``annotator``,
                ``rater``; ``answer``, ``rating``), never by their order.
                Of several votes of a worker on a task the last one counts. With ``abstain``, a
                matrix with a row a task: data frame, whose index names the tasks, array, or a
                sparse one, whose unstored cells are abstentions.
            y: not used, which a warning says; checked classes are given as ``trusted``.
            trusted: mapping or series from some tasks to their checked classes, or ``(N,)`` of
                them in the order of ``tasks_``, None where unchecked, as of an audit's result.

        Raises:
            DataError: bad input, naming the row.
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``.

        Warns:
            IdentifiabilityWarning: the workers' mean noise matrix is not diagonally dominant, or
                there are two workers and no checked classes.
            NotConvergedWarning: the iteration did not converge.
            NbmodelsWarning: many votes are again of one worker on one task; labels are numbers, or
                of an ordered Categorical, and held-out votes are surely likelier if ``ordered``;
                nobody uses a grade at an end of an ordered scale, which is then no class.
        """
        parameters = self._validate()
        if y is not None:
            message = "y: is not used; checked classes of some tasks are given as trusted="
            issue([Caution(NbmodelsWarning, message)])
        table, tasks, workers = source = self._read(votes)
        if self.abstain is not None:
            check_abstentions(source, self.abstain, self.classes)
        table.check_labels(self.classes)
        checked = trusted_tasks(trusted, tasks)
        declared = self.classes
        unused: tuple[Caution, ...] = ()
        if self.ordered:
            declared = in_order(table, self.classes)
            if self.class_prior is None:
                declared, unused = used_grades(declared, table, checked)
        classes = Classes.infer(known_labels(table.label.names, _NAME), declared, _NAME)
        if self.classes is None:
            check_marker(classes.names, None, _NAME)
        n, k = len(tasks), len(classes)
        cast = VoteTable(*table.cells(tasks, workers, classes), n)
        types, parameters = Subtypes(k, parameters["subtypes"]), self._by_class(parameters, classes)
        with computing(self._double(len(cast.row) * types.number)):
            known = None
            if checked is not None:
                known = trusted_codes(checked, classes, n, None, tasks)
            training = VotesTraining(
                cast,
                len(workers),
                classes.names,
                types,
                known,
                parameters,
                self._options(),
                functions=self.abstain is not None,
                dependence=self.dependence,
                pooling_open=isinstance(self.pooling, str) and self.pooling == "auto",
                sole=self._sole,
                ordered=bool(self.ordered),
                rank=self._rank(table, classes),
            )
            found = training.trained()
            self.tasks_, self.workers_ = tasks, workers
            by_class = np.bincount(cast.row * k + cast.label, minlength=n * k).reshape(n, k)
            self._task_votes = by_class @ np.ones(k, int)
            self._majority = np.where(self._task_votes, by_class.argmax(1), -1)
            self._votes, self._copies = found.votes, found.copies
            self._held, self._shown, self._drawn = found.held, found.shown, None
            cautions = *table.repeated(len(cast.row)), *graders_caution(found.graders), *unused
            if self.abstain is None:
                cautions = (*cautions, *workers_spelt_alike(workers))
            if len(workers) == 2 and checked is None:
                cautions = (*cautions, Caution(IdentifiabilityWarning, _TWO_WORKERS))
            self._finish(found.fitted, cautions)
        self.classes_ = classes.names
        return self

    def _rank(self, table: Votes, classes: Classes) -> np.ndarray | None:
        """``(K,)`` place of each class on a scale; None where graders are not to be compared."""
        other = (
            not self._beside_graders
            or self.ordered
            or self.abstain is not None
            or self.subtypes > 1
        )
        return None if other or self._rule != "map" else rank_of(table, classes.names)

    def _read(self, votes: Any, functions: np.ndarray | None = None) -> VoteSource:
        """Votes, or outputs of labelling functions, which are those of a fit unless None."""
        if self.abstain is not None:
            return read_outputs(votes, self.abstain, functions)
        table = Votes.read(votes)
        return VoteSource(table, table.tasks(), table.workers())

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
        if self.ordered:
            return ordered_parameters(parameters, self._rule)
        pooling = self._pooling if self.abstain is None else "functions"
        return {**parameters, "pooling": pooling}

    # As one source among others -----------------------------------------------------------------

    def _source_items(self, values: Any) -> None:
        """None: a row is a vote."""

    def _source_classes(self, values: Any) -> np.ndarray:
        """Classes that were named."""
        return Votes.read(values).label.names

    def _source_learn(self, values: Any, items: Items) -> LearnedSource:
        """The annotators' channel with the votes on ``items``; see :class:`Source`.

        As one source of several, annotators are drawn to their own accuracies unless ``pooling``
        says otherwise, or taken to be alike where a fit to the votes alone takes them so; votes are
        tempered by what that fit shows of their dependence.
        """
        parameters = self._validate()
        if self.abstain is not None or self.subtypes > 1 or self.ordered:
            raise DataError("abstain, subtypes, ordered: not for one source of several")
        if isinstance(self.pooling, str) and self.pooling == "auto":
            parameters["pooling"] = "none" if self._rule == "ml" else "own"
        self.workers_ = Votes.read(values).workers()
        votes = votes_of(self, values, self.workers_, items)
        found = learned_votes(_NAME, votes, values, items, parameters)
        if not votes.by_chance:
            return found
        shown = votes_of(self, values, self.workers_, items, sole=False)
        other = learned_votes(_NAME, shown, values, items, parameters)
        return replace(found, beside_others=other)

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
        each = POINTS if self.ordered else self.subtypes
        return Subtypes(len(self.fitted_.names) // each, each)

    @property
    def worker_noise_matrix_(self) -> Float[np.ndarray, "w observed k"]:
        """``(W, K, K)`` ``[worker, observed, true]``, P(observed | true).

        With ``abstain`` the last of ``K + 1`` observed labels is an abstention.
        """
        return self._types.averaged(annotator_model(self.fit_).matrices, super().class_prior_)

    @property
    def noise_matrix_(self) -> Float[np.ndarray, "observed k"]:
        """``(K, K)`` ``[observed, true]`` of an unknown worker: the mean of the workers' priors."""
        return self._types.averaged(self._unknown_worker, super().class_prior_)

    @property
    def _unknown_worker(self) -> Float[np.ndarray, "observed c"]:
        channel: Any = self.fit_.model[_NAME]
        found: Float[np.ndarray, "observed c"] = channel.of_unknown(self._rule)
        return found

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
                given the class, as those of :meth:`posterior`. Of three to five workers, whose
                votes hardly show the classes, they are of posterior draws, which takes seconds;
                the best one's accuracy comes out too low (``benchmarks/records/crowds.md``).

        Returns:
            A frame with ``worker``, ``votes``, ``accuracy`` (expected share of right votes),
            ``low`` and ``high`` (ends of its credible interval), ``spammer_score`` (0 where votes
            follow the class exactly, 1 where they do not depend on it; an abstention of a labelling
            function is an outcome like a vote, since a function that names one class is known by
            it: one that is always right and abstains from half of the items, whatever their
            classes, has 0.75), ``copies`` (a tuple of the workers with whom a worker agrees too
            often), ``copies_from`` (whom of these a worker copies) and ``copied_share`` (in how
            many of all their votes); the most frequent worker first. Votes have no order: whom a
            worker copies is named where two workers or more follow the same one, is None otherwise,
            and in a chain of copies is the middle one.
            Where classes are ``ordered``, also ``severity`` (by how many grades of the mean width a
            worker grades below others), ``scale`` (of their logistic errors, in such grades),
            ``range`` (of their thresholds about the middle one; below 1 where they prefer the
            ends) and ``lapse`` (share of votes that do not depend on the item).
        """
        from nbmodels.diagnostics.annotators import (
            annotator_report,
            untempered,
            with_drawn_intervals,
        )

        check_is_fitted(self)
        votes, model = self._votes, annotator_model(self.fit_)
        copies = self._copies
        if not copies.found:  # they were not sought where votes are taken for independent
            of_functions = self.abstain is not None
            sizes = len(self.workers_), len(self.classes_)
            copies = find_copies(replace(votes, weights=None), *sizes, of_functions)
        priors = resolved_priors(self.priors)
        # no "auto", which votes refuse
        pseudo = float(priors.noise_alpha) + float(priors.noise_diagonal)
        model = untempered(model, votes)
        found = annotator_report(model, votes, self.workers_, level, copies, self._shown + pseudo)
        if self._hardly_shown and not copies.found:
            found = with_drawn_intervals(found, self._report_draws(), self.class_prior_, level)
        found = found.reset_index(drop=True)
        return found.join(self._traits, on="worker") if self.ordered else found

    def _report_draws(self) -> Any:
        """Draws that a report takes intervals of; of one fit they are drawn once."""
        if self._drawn is None:
            # accuracies near one mix slowly: the report takes both intervals then
            with warnings.catch_warnings(action="ignore", category=PosteriorWarning):
                drawn = self.posterior(random_state=0, progress=False, keep="parameters")
            self._drawn = drawn
        return self._drawn

    @property
    def _hardly_shown(self) -> bool:
        """Whether workers are so few that a normal approximation of their accuracies is poor."""
        own = isinstance(self.fit_.model[_NAME], OneCoinAnnotators) and self.subtypes == 1
        few = _FEWEST_WORKERS <= len(self.workers_) <= _FEW_WORKERS
        open_ = few and len(self._votes.label) <= _FEW_VOTES
        return own and open_ and self.abstain is None and self.fit_.rule == "map"

    @property
    def _traits(self) -> pd.DataFrame:
        """How each worker grades on an ordered scale."""
        channel: Any = self.fit_.model[_NAME]
        return pd.DataFrame(channel.traits(self.fit_.params[_NAME]), self.workers_)

    def _reported(self, draws: Any, rng: np.random.Generator) -> Any:
        """Draws; with a warning where some vote as a group, and nobody knows who is right."""
        at = self.fitted_.vote_dependence
        if at is not None and at.pooling == ALIKE and at.uneven > MOST_UNEVEN:
            what = (
                "some workers vote as a group, and draws are of workers who are alike and vote "
                "independently: intervals of class shares and accuracies are too narrow"
            )
            draws.attrs["warnings"] = "\n".join(filter(None, (draws.attrs["warnings"], what)))
            issue([Caution(PosteriorWarning, what)])
        return draws_by_class(draws, self.classes_) if self.ordered else draws

    def _item_names(self) -> Any:
        return self.tasks_

    def _coords(self) -> dict[str, Mapping[str, Any]]:
        return {_NAME: {"annotator": self.workers_}}

    def corrected_labels(self) -> pd.DataFrame:
        """The tasks with majority vote and suggested class, the most doubtful ranked first.

        Returns:
            A frame with the columns that every estimator's has, of which ``row`` is the task and
            ``given`` the majority of its votes (``p_wrong`` is the probability that the majority is
            wrong), and ``votes``, their number. Where all labelling functions abstain there is no
            majority: ``given``, ``p_wrong`` and ``rank`` are null. See
            :meth:`NoisyBernoulliNB.corrected_labels`.
        """
        check_is_fitted(self)
        given = self.classes_[self._majority]
        if (self._majority < 0).any():
            given = given.astype(object)
            given[self._majority < 0] = None
        votes = {"votes": self._task_votes.astype(int)}
        return self._corrected(self._item_names(), given, self._majority, votes)

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, votes: Any = None) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` P(true class | votes) of tasks, in the order of their sorted ids, or of rows.

        Args:
            votes: new votes, as :meth:`fit` takes them; the fitted ones, whose tasks are
                ``tasks_``, where None. A worker who did not occur in the fit has the noise matrix
                of an unknown one. Outputs of labelling functions are of those of the fit: columns
                of a data frame go by their names, those of an array by their position.

        Raises:
            DataError: bad input; other labelling functions than in the fit.
        """
        check_is_fitted(self)
        if votes is None:
            return self.label_posterior_
        table, tasks, workers = self._read(votes, self.workers_)
        classes = Classes(self.classes_)
        coded = VoteTable(*table.cells(tasks, workers, classes), len(tasks))
        known = pd.Index(self.workers_).get_indexer(pd.Index(workers))
        model = annotator_model(self.fit_)
        unknown = np.broadcast_to(self._unknown_worker, model.pseudo.shape[1:])
        pseudo = np.where((known >= 0)[:, None, None], model.pseudo[known], unknown)
        power = None if model.power is None else np.where(known >= 0, model.power[known], 1.0)
        dependence = self.fitted_.vote_dependence
        correlation = 0.0 if dependence is None else dependence.correlation
        coded = weighted(coded, self._copies.extended(known), self.abstain is not None)
        model = replace(model, pseudo=pseudo, power=power)
        return self._types.summed(tempered_posterior(model, coded, correlation))

    def _predicted_ids(self, votes: Any) -> np.ndarray:
        """Of the tasks that :meth:`predict` answers for, in its order."""
        return self.tasks_ if votes is None else self._read(votes, self.workers_)[1]

    def predict(self, votes: Any = None) -> np.ndarray:
        """``(N,)`` likeliest class of tasks, in the order of their sorted ids, or of rows."""
        best = self.predict_proba(votes).argmax(1)
        return self.classes_[best]
