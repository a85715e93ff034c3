"""Joint model of several sources: features, user graphs, annotators and labels of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from inference.arrays import on_device
from nbmodels.core.component import Component
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.data.labels import Classes
from nbmodels.data.noisy_labels import LabelData, by_item, read_labels
from nbmodels.data.possible_labels import allowed_classes, check_possible, names_of_known
from nbmodels.data.validation import as_column, check_order, check_weights
from nbmodels.errors import DataError, counted
from nbmodels.estimators.base import LatentClassModel
from nbmodels.estimators.constraints import Constraint, Number
from nbmodels.estimators.joint_assembly import (
    About,
    by_part,
    cautions_of_data,
    item_powers,
    left_out,
    log_jacobian_of,
    part_name,
    silent_parts,
)
from nbmodels.estimators.joint_hearing import hear_features, hear_graphs, is_graph
from nbmodels.estimators.options import NoiseForm, Priors, RandomState, Solver, SolverName
from nbmodels.estimators.sources import Items, LearnedSource, Part, Source
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.collapsed_updates import given_shares
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.holdout import held_out_scores
from nbmodels.fitting.joint import Alternative, joint, select_parts
from nbmodels.fitting.label_sources import (
    LabelSource,
    candidate_sets,
    label_sources,
    learned_priors,
)
from nbmodels.fitting.options import is_auto
from nbmodels.fitting.scores import Candidate

#: Folds of the labels by which joint and cross-fitted graphs are compared.
_FOLDS = 5

#: Names of the components that are not sources.
_TAKEN = (PRIOR, "labels", "trusted", "possible")


class JointNB(LatentClassModel):
    """One model of features of several kinds, a user graph, annotators and labels of every kind.

    Each source is described by an estimator of this library, which knows how its data are read and
    what they are modelled by: ``NoisyMultinomialNB`` for words, ``NoisyGaussianNB`` for numbers,
    ``NoisyLabelClassifier`` for any classifier, ``DawidSkene`` for votes,
    ``CollaborativeClassifier`` for interactions. Given the true class the sources are independent,
    so that their log-likelihoods add up. Votes of annotators count as in ``DawidSkene`` where they
    depend on each other, but in :meth:`posterior`. There is no ``noise_range_``, whose other end
    needs items that are points of one space::

        model = JointNB({
            "text": NoisyMultinomialNB(alpha=0.1, training=Joint(weight=0.3)),
            "size": NoisyGaussianNB(),
            "users": CollaborativeClassifier(),
            "crowd": DawidSkene(),
        })
        model.fit({"text": X, "size": Z, "users": pairs, "crowd": votes}, y)
        model.predict({"text": X_new})  # any of the sources will do

    Parameters:
        sources: estimators by the sources' names. Their own settings of the fit (``solver``,
            ``noise`` and the like) are not used. A table whose ``training`` is ``"auto"`` is fitted
            jointly or cross-fitted, ``chosen_["size_training"]`` of a source ``"size"``: as labels
            and votes of items that a fit has not seen are likelier
            (:mod:`nbmodels.fitting.heard_features`). Jointly its likelihood counts to a power that
            is selected likewise, ``chosen_["size_weight"]``, or in full if its features pass their
            checks; cross-fitted it is evidence that learned from what is known of other items
            (:mod:`nbmodels.fitting.table_evidence`), and has no parameters in the model.
            ``NoisyLogisticRegression`` and ``NoisyLabelClassifier`` always are: of an item count
            the calibrated probabilities of a classifier that has not learned from it, against the
            class shares. A table has no weight, with a warning, where labels and votes are not
            likelier given the features than given the class shares. In a joint fit other settings
            of a table at ``"auto"`` are not selected but take a cautious value: ``alpha=1``,
            ``covariance="diag"``, ``size_power=0``. A graph is cross-fitted: its users learn from
            what is known of other items (:mod:`nbmodels.fitting.graph_evidence`), and it has no
            weight where that does not surely predict labels. With a number for its ``weight``,
            ``alpha="bound"`` or a ``training`` of its own it is fitted jointly; what is open of
            ``alpha`` and ``weight`` is then selected by labels held out of ``y``, the shares of the
            classes are held at those of the given labels where ``class_prior`` is None, since a
            graph's factors reward one class for all, and the verdict compares the fit with a
            cross-fitted one.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"``
            (full, shrunk to one error rate as far as the classes are alike), or a known ``(K, K)``
            matrix ``[observed, true]`` whose columns sum to one. ``"auto"``: pooled; beside a graph
            symmetric or full, as held-out labels are likelier, surely so where the graph is fitted
            jointly; full for ``solver="ml"``.
        class_prior: ``(K,)`` known shares of the true classes; None to learn them.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`
            with the limits of the iteration. ``"map"`` integrates over the proportions of the users
            of a graph that is fitted jointly, who have few interactions each (variational EM), and
            takes the modes of all else, since of few votes variational Bayes gives one class the
            items of others.
        random_state: seed of restarts and posterior draws; None takes others each time.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        class_prior_: ``(K,)`` shares of the true classes.
        noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the items.
        chosen_: settings that were selected, those of a source with its name before theirs.
        choice_: data frame of all that was compared, or None.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        sources_: the sources' estimators, with the codings they learned.
        items_: ``(N,)`` ids of the items.

    Examples:
        >>> import numpy as np
        >>> import pandas as pd
        >>> from nbmodels import DawidSkene, JointNB, NoisyGaussianNB
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 100), np.array(["ant", "bee"])
        >>> task = np.repeat(np.arange(100), 2)  # two votes each
        >>> given = np.where(rng.random(200) < 0.8, truth[task], 1 - truth[task])
        >>> votes = pd.DataFrame({"task": task, "worker": ["a", "b"] * 100, "label": names[given]})
        >>> model = JointNB({"size": NoisyGaussianNB(), "crowd": DawidSkene()})
        >>> model = model.fit({"size": rng.normal(5 + 3 * truth)[:, None], "crowd": votes})
        >>> print((model.corrected_labels()["suggested"] == names[truth]).sum())  # of 100
        95
        >>> model.predict({"size": [[5.0], [8.0]]}).tolist()  # new items: their size alone
        ['ant', 'bee']
    """

    _one_end: ClassVar[str] = (
        "its other end is of near items, and items of several sources are no points of one space; "
        "fit an estimator of one source, or check rows by hand (audit_plan)"
    )

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "noise_diagonal": Number(),
    }

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.sources = sources
        self.noise = noise
        self.class_prior = class_prior
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.solver = solver
        self.random_state = random_state

    def _settable(self) -> frozenset[str]:
        """Its own parameters, and the settings of its sources, which are fitted jointly."""
        models = (one for one in self.sources.values() if isinstance(one, LatentClassModel))
        of_sources = (one._settable() - {"training"} for one in models)
        return super()._settable().union(*of_sources)

    # Fitting ------------------------------------------------------------------------------------

    def fit(
        self,
        X: Mapping[str, Any],
        y: Any = None,
        sample_weight: Any = None,
        trusted: Any = None,
        possible: Any = None,
        *,
        items: Any = None,
    ) -> Self:
        """Fit to everything that is known of the items.

        Args:
            X: data by source, as the source's estimator takes them; tables have a row an item, in
                the items' order, votes name the item as ``task``, interactions as ``item``.
            y: ``(N,)`` one noisy label an item; None where there is none of this kind.
            sample_weight: ``(N,)`` row weights.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping or series of some,
                by the items' ids.
            possible: what is possible: ``(N, K)`` booleans, or a set of classes an item, null where
                nothing is excluded; or a mapping or series of some sets, by the items' ids.
            items: ``(N,)`` ids of the items, by which all other arguments name them; by default
                the index of the first table that is a data frame, where its ids are distinct, and
                0 to N - 1 where there is none.

        Raises:
            DataError: bad input, naming source and row.
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``.

        Warns:
            IdentifiabilityWarning: a noise matrix is not diagonally dominant.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        self._check_names(X)
        sources = {name: clone(self.sources[name]).set_params(solver=self.solver) for name in X}
        rows = {"y": y, "sample_weight": sample_weight, "trusted": trusted, "possible": possible}
        ids = _items(sources, X, rows, items)
        n = len(ids)
        trusted, possible = (by_item(name, rows[name], ids) for name in ("trusted", "possible"))
        read, labels = self._all_labels(sources, X, y, trusted, possible, n)
        weights, k = check_weights(sample_weight, n), len(read.classes)
        cells = sum(map(_cells, X.values()))
        with computing(self._double(cells * k)):
            learned = _learned(sources, X, Items(ids, read.classes, weights, read.codes))
            parameters = self._by_class(parameters, read.classes)
            about = About(X, ids, read.classes, labels, weights, parameters)
            options = replace(self._options(), tables=True)
            alone = self._forms({}, {}, about)[0]
            learned, interrupted = hear_features(learned, about, alone, options)
            listening = {n: one.listening for n, one in learned.items() if one.listening}
            if listening and not interrupted:
                learned, interrupted = hear_graphs(learned, listening, about, alone, options)
            crossed = {n: one.crossed for n, one in learned.items() if one.crossed}
            compared = bool(crossed) and "labels" in labels
            fitted = self._jointly(learned, about, interrupted, scored=compared)
            if compared and not fitted.interrupted:
                other, interrupted = hear_graphs(learned, crossed, about, alone, options)
                crossed_fit = self._jointly(other, about, interrupted, scored=True)
                fitted = replace(fitted, counterpart=crossed_fit)
                if crossed_fit.interrupted:
                    fitted = replace(fitted, interrupted=True, cautions=(INTERRUPTED,))
        self.sources_, self.items_ = sources, ids
        self._learned, self._labels = learned, read
        return self._finish(fitted)

    def _jointly(
        self,
        learned: Mapping[str, LearnedSource],
        about: About,
        interrupted: bool,
        *,
        scored: bool = False,
    ) -> FittedModel:
        """Select what is open, and fit.

        Args:
            learned: what the sources learned.
            about: what the model is assembled from beside that.
            interrupted: whether Ctrl-C ended what went before.
            scored: whether labels are held out of the selected model, too.
        """
        found: dict[str, Part] = by_part(learned, "parts")
        forms = self._forms(found, learned, about)
        n, k = len(about.ids), len(about.classes)
        about = about.with_noise(forms[0])
        model, data = about.assembled(learned)
        edges = {name: p.edges for name, p in found.items() if p.edges is not None}
        if edges and self.class_prior is None:
            model[PRIOR] = given_shares(model, data, about.parameters["class_alpha"])
        _check_settings(found, model, self._rule)
        options = replace(self._options(), graphs=edges, tables=True)
        open_ = {
            name: [_of_source(name, tried) for tried in part.alternatives]
            for name, part in found.items()
            if part.alternatives
        }
        of_labels = about.labels.get("labels")
        models: list[tuple[dict[str, Any], Model]] = [({}, model)]
        if of_labels is not None and len(forms) > 1:
            channels = [of_labels.channel(k, about.with_noise(one).parameters) for one in forms]
            models = [
                ({"noise": form}, {**model, "labels": channel})
                for form, channel in zip(forms, channels, strict=True)
            ]
        selected = select_parts(models, data, open_, options)
        model, interrupted = dict(selected.model), interrupted or selected.interrupted
        scores = None
        if scored and not interrupted:
            try:
                scores = held_out_scores(model, data, options, _FOLDS).scores
            except KeyboardInterrupt:
                interrupted = True
        pooled = tuple(name for name, p in found.items() if p.pooled)
        tried = [*open_, *silent_parts(found)]
        powers = {f"{n}_{w}": v for n, one in learned.items() for w, v in one.chosen.items()}
        fitted = joint(
            Candidate(model, data, (*learned_priors(model), *pooled)),
            about.classes.names,
            n,
            options,
            log_jacobian=log_jacobian_of(found, model, n),
            columns=by_part(learned, "columns"),
            units=by_part(learned, "units"),
            chosen={**powers, **selected.chosen},
            choice=selected.table,
            held_out_scores=scores,
            interrupted=interrupted,
            cautions=(*left_out(model, tried, interrupted), *cautions_of_data(learned)),
        )
        alone = not any(model[name].weight for name in set(model) - {PRIOR, "labels"})
        # labels alone say nothing of their noise: it has its prior
        return replace(fitted, drawn=(fitted.fit, fitted.data), collapsed=True) if alone else fitted

    def _forms(
        self, found: Mapping[str, Part], learned: Mapping[str, LearnedSource], about: About
    ) -> list[Any]:
        """Forms of the noise that labels may have, the cautious one first.

        Beside a graph a hierarchical prior takes what the edges say for errors of one class; a
        graph that has learned from the labels has compared the forms.
        """
        if not is_auto(self.noise):
            return [about.classes.in_order("noise", self.noise)]
        if self._rule == "ml":  # it has no prior to learn
            return ["full"]
        for one in learned.values():
            if one.heard is not None and one.heard.heard:
                return [one.heard.noise]
        of_graphs = any(part.alternatives or part.edges is not None for part in found.values())
        return ["symmetric", "full"] if of_graphs else ["pooled"]

    def _check_names(self, X: Any) -> None:
        if not isinstance(self.sources, Mapping) or not self.sources:
            raise DataError("sources: expected a mapping from names to estimators")
        if not isinstance(X, Mapping) or not X:
            raise DataError("X: expected a mapping from sources to their data")
        for name in self.sources:
            if name in _TAKEN:
                raise DataError(f"sources: {name!r} is a name of the model's own; take another")
            if not getattr(self.sources[name], "_is_source", False):
                raise DataError(
                    f"sources: {name}: {type(self.sources[name]).__name__} cannot be a source; see "
                    "JointNB for those that can"
                )
        for name in X:
            if name not in self.sources:
                known = ", ".join(map(str, self.sources))
                raise DataError(f"X: there is no source {name!r}; the sources are {known}")

    def _all_labels(
        self,
        sources: Mapping[str, Source],
        X: Mapping[str, Any],
        y: Any,
        trusted: Any,
        possible: Any,
        n: int,
    ) -> tuple[LabelData, dict[str, LabelSource]]:
        named = [sources[name]._source_classes(values) for name, values in X.items()]
        others = [v for v in named if v is not None]
        if y is None and self.classes is None:
            others += names_of_known(trusted, possible, n, self.missing_label)
        read = read_labels(
            y,
            n,
            reader=type(self).__name__,
            declared=self.classes,
            marker=self.missing_label,
            trusted=trusted,
            others=others,
        )
        labels = label_sources(read)
        if possible is not None:
            allowed = allowed_classes(possible, n, read.classes)
            check_possible(allowed, read)
            labels["possible"] = candidate_sets(allowed)
        if not labels and all(v is None for v in named):
            raise DataError(
                "y: no label names the class of any item; give y, votes, trusted or possible"
            )
        return read, labels

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, X: Mapping[str, Any], items: Any = None) -> np.ndarray:
        """``(n, K)`` P(true class | what is known) of new items.

        Args:
            X: data of any of the sources.
            items: ids of the new items, by which votes and interactions name them.
        """
        check_is_fitted(self)
        self._check_names(X)
        for name in X:
            if name not in self.sources_:
                raise DataError(f"X: source {name!r} had no data in the fit")
        ids, classes = _items(self.sources_, X, {}, items), Classes(self.classes_)
        with computing(self.fitted_.double):
            parts: dict[str, Any] = {PRIOR: None}
            for name, values in X.items():
                packed = _naming(name, self._learned[name].encode, values, ids, classes)
                parts |= {part_name(name, part, len(packed)): x for part, x in packed.items()}
            powers = item_powers(self._learned, X, ids, classes)
            return self.fitted_.predict(Data(parts, on_device(np.ones(len(ids))), powers))

    def predict(self, X: Mapping[str, Any], items: Any = None) -> np.ndarray:
        """``(n,)`` likeliest true class of new items; arguments as :meth:`predict_proba`."""
        best = self.predict_proba(X, items).argmax(1)
        return self.classes_[best]

    # Read-outs ----------------------------------------------------------------------------------

    def noise_matrices(self) -> dict[str, np.ndarray]:
        """``(K, K)`` ``[observed, true]`` of every source of labels, by its name.

        For several annotators, that of one taken at random.
        """
        check_is_fitted(self)
        return self.fitted_.noise_matrices

    def _of_graph(self) -> bool:
        return all(map(is_graph, self._learned.values()))

    def _crossed(self) -> tuple[FittedModel, FittedModel] | None:
        other = self.fitted_.counterpart
        return None if other is None else (self.fitted_, other)

    def _item_names(self) -> Any:
        return self.items_

    def _coords(self) -> dict[str, Mapping[str, Any]]:
        return by_part(self._learned, "coords")

    def corrected_labels(self) -> pd.DataFrame:
        """The items' labels, given and suggested, the most doubtful ranked first.

        Returns:
            A frame with the columns that every estimator's has, of which ``row`` is the item. See
            :meth:`NoisyBernoulliNB.corrected_labels`.
        """
        check_is_fitted(self)
        return self._corrected(self._item_names(), self._labels.given, self._labels.codes)


def _check_settings(found: Mapping[str, Part], model: Mapping[str, Component], rule: str) -> None:
    for name, part in found.items():
        if part.alternatives and "labels" not in model:
            raise DataError(
                f"{name}: settings are selected by labels held out of y, which is not given; give "
                "alpha and weight as numbers"
            )
        if part.pooled and rule == "ml":
            raise DataError(f"{name}: method 'ml' has no prior to learn; take 'map' or 'vb'")


def _of_source(name: str, tried: Alternative) -> Alternative:
    """Settings called by the source's name and their own."""
    return tried._replace(settings={f"{name}_{what}": v for what, v in tried.settings.items()})


def _cells(values: Any) -> int:
    """Number of cells of a source's data, of both where they are features with labels."""
    if isinstance(values, tuple):
        return sum(map(_cells, values))
    return int(values.nnz) if hasattr(values, "nnz") else int(np.size(values))


def _items(
    sources: Mapping[str, Source], X: Mapping[str, Any], rows: Mapping[str, Any], items: Any
) -> np.ndarray:
    """Ids of the items; their number from whatever has a row an item.

    Args:
        sources: estimators by the sources' names.
        X: data by source.
        rows: other arguments with a row an item, by name.
        items: ids that are given, or None.
    """
    sizes = {name: sources[name]._source_items(values) for name, values in X.items()}
    known = {name: size for name, size in sizes.items() if size is not None}
    if rows.get("y") is not None:
        known["y"] = len(rows["y"])
    if items is not None:
        ids = as_column("items", items)
        if len(pd.unique(ids)) != len(ids):
            raise DataError("items: an id occurs twice")
        known = {"items": len(ids), **known}
    if not known:
        raise DataError(
            "items: expected ids of the items, since votes and interactions alone do not say "
            "which items there are and in which order"
        )
    first, n = next(iter(known.items()))
    for name, size in known.items():
        if size != n:
            raise DataError(f"{name}: has {counted(size, 'row')} where {first} has {n}")
    tables = {name: X[name] for name in known if name in X}
    framed = [(t, v.index) for t, v in tables.items() if isinstance(v, pd.DataFrame | pd.Series)]
    named = (one for one in framed if not one[1].equals(pd.RangeIndex(n)))
    of, index = next(named, framed[0] if framed else ("", None))
    if items is not None:
        of, index = "items", pd.Index(ids)
    for name, values in {**tables, **rows}.items():
        check_order(name, values, index, of, "items" if items is not None else "")
    if items is not None:
        return ids
    return index.to_numpy() if index is not None and index.is_unique else np.arange(n)


def _naming(name: str, method: Callable[..., Any], *args: Any) -> Any:
    """What a method of a source returns, with errors that name the source."""
    try:
        return method(*args)
    except DataError as error:
        raise type(error)(f"{name}: {error}") from error


def _learned(
    sources: Mapping[str, Source], X: Mapping[str, Any], items: Items
) -> dict[str, LearnedSource]:
    return {
        name: _naming(name, sources[name]._source_learn, values, items)
        for name, values in X.items()
    }
