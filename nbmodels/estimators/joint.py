"""Joint model of several sources: features, user graphs, annotators and labels of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from inference.arrays import on_device
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.labels import Classes
from nbmodels.data.noisy_labels import by_item, without_weight
from nbmodels.data.shared_columns import shared_columns
from nbmodels.data.validation import check_weights
from nbmodels.errors import DataError, issue
from nbmodels.estimators.base import LatentClassModel
from nbmodels.estimators.constraints import Constraint, Number
from nbmodels.estimators.joint_assembly import About, by_part, item_powers, part_name
from nbmodels.estimators.joint_input import (
    cells_of,
    check_names,
    item_ids,
    learned_sources,
    naming,
    of_all_items,
    read_all_labels,
)
from nbmodels.estimators.joint_training import JointTraining
from nbmodels.estimators.options import NoiseForm, Priors, RandomState, Solver, SolverName
from nbmodels.estimators.source_selection import has_say, is_graph
from nbmodels.estimators.sources import Items
from nbmodels.fitting.fitted_model import FittedModel


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
            (:mod:`nbmodels.fitting.held_out_items`). Jointly its likelihood counts to a power that
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
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them. Votes hold them
            near their own shares, as in ``DawidSkene``.
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
        96
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
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
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
                the items' order, or are data frames of some items, by ``items``, whose estimators
                have ``missing_values``; votes name the item as ``task``, interactions as ``item``.
            y: ``(N,)`` one noisy label an item; None where there is none of this kind.
            sample_weight: ``(N,)`` row weights.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping or series of some,
                by the items' ids.
            possible: what is possible: ``(N, K)`` booleans, or a set of classes an item, null where
                nothing is excluded; or a mapping or series of some sets, by the items' ids.
            items: ``(N,)`` ids of the items, by which all other arguments name them; by default
                the index of the first table that is a data frame, where its ids are distinct, that
                of y where it is a series and no table is one, and 0 to N - 1 where there is none.

        Raises:
            DataError: bad input, naming source and row.
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``.

        Warns:
            IdentifiabilityWarning: a noise matrix is not diagonally dominant.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        check_names(self.sources, X)
        sources = {name: clone(self.sources[name]).set_params(solver=self.solver) for name in X}
        X = of_all_items(sources, X, items)
        rows = {"y": y, "sample_weight": sample_weight, "trusted": trusted, "possible": possible}
        ids = item_ids(sources, X, rows, items)
        n = len(ids)
        trusted, possible = (by_item(name, rows[name], ids) for name in ("trusted", "possible"))
        asked = type(self).__name__, self.classes, self.missing_label
        read, labels = read_all_labels(sources, X, (y, trusted, possible), n, *asked)
        weights, k = check_weights(sample_weight, n), len(read.classes)
        issue(without_weight(read, weights))
        with computing(self._double(cells_of(X) * k)):
            learned = learned_sources(sources, X, Items(ids, read.classes, weights, read.codes))
            parameters = self._by_class(parameters, read.classes)
            about = About(X, ids, read.classes, labels, weights, parameters)
            options = replace(self._options(), tables=True)
            training = JointTraining(self.noise, self.class_prior is not None, options)
            learned, fitted = training.trained(learned, about)
        self.sources_, self.items_ = sources, ids
        self._learned, self._labels = learned, read
        tables = {
            name: x
            for name, x in X.items()
            if sources[name]._source_items(x) == n and has_say(learned[name])
        }
        return self._finish(fitted, shared_columns(tables))

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, X: Mapping[str, Any], items: Any = None) -> np.ndarray:
        """``(n, K)`` P(true class | what is known) of new items.

        Args:
            X: data of any of the sources.
            items: ids of the new items, by which votes and interactions name them.
        """
        check_is_fitted(self)
        check_names(self.sources, X)
        for name in X:
            if name not in self.sources_:
                raise DataError(f"X: source {name!r} had no data in the fit")
        X = of_all_items(self.sources_, X, items)
        ids, classes = item_ids(self.sources_, X, {}, items), Classes(self.classes_)
        with computing(self.fitted_.double):
            parts: dict[str, Any] = {PRIOR: None}
            for name, values in X.items():
                packed = naming(name, self._learned[name].encode, values, ids, classes)
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
