"""Items known by the users who touch them, with noisy labels: collaborative classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from inference.arrays import on_device
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import Data
from nbmodels.data.noisy_labels import read_labels
from nbmodels.data.user_item_graph import (
    edges_to_known,
    item_weights,
    labelled_items,
    of_items,
    read_graph,
    rows_of_items,
)
from nbmodels.data.validation import as_floats, check_weights
from nbmodels.emissions import Users
from nbmodels.errors import DataError
from nbmodels.estimators.base import LatentClassModel
from nbmodels.estimators.constraints import (
    Concentration,
    Constraint,
    GraphTraining,
    NoFoldsOrMore,
    Noise,
    Number,
)
from nbmodels.estimators.graph_input import (
    by_item_id,
    graph_cautions,
    refuse_arguments,
    with_names_of_graphs,
)
from nbmodels.estimators.graph_source import CrossFittedGraph, EdgesOf
from nbmodels.estimators.options import (
    JointGraph,
    NoiseForm,
    Priors,
    RandomState,
    Solver,
    SolverName,
)
from nbmodels.estimators.sources import Items, LearnedSource, Part
from nbmodels.fitting.collapsed_updates import Edges
from nbmodels.fitting.fitted_graph import FittedGraph
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.graph_training import (
    USERS,
    GraphSettings,
    alternatives,
    train_cross_fitted,
    train_joint,
)
from nbmodels.fitting.joint import Alternative
from nbmodels.fitting.label_sources import item_prior_source, label_sources
from nbmodels.fitting.neighbours import READINGS, has_repeats
from nbmodels.fitting.options import is_auto
from nbmodels.fitting.points import points
from nbmodels.fitting.separable import with_separable
from nbmodels.fitting.stacked_graph import train_stacked


class CollaborativeClassifier(LatentClassModel):
    """Corrects items' labels by who interacts with what (Maystre 2021), and learns the noise.

    Users interact with the classes in proportions of their own, ``u ~ Dirichlet(alpha)``. The
    published algorithm (:meth:`published`) lets an item vote for its own label, and takes noise and
    alpha as given: where edges carry little information it makes labels worse than it found them.

    By default predictions are an average of several models of an item's neighbours, each calibrated
    with the noise, by the weights under which labels that they have not seen are likeliest
    (:mod:`nbmodels.fitting.stacked_graph`). Where it predicts labels no better than chance, labels
    stay as they are, new items are classified by their neighbours' votes, and draws of the noise
    are those of its prior; where the noise level is hardly identified, labels are changed with more
    caution the likelier harm is. A joint model holds the shares of the classes at those of
    the given labels, unless ``class_prior`` says otherwise: learned they run off to one class.

    Parameters:
        alpha: concentration of the users' proportions: a number, an array that broadcasts to
            (users, classes), ``"auto"`` (by held-out labels), or ``"bound"`` (empirical Bayes:
            maximises the evidence bound).
        weight: power of the edges, a number or ``"auto"``.
        training: ``"auto"`` for an average of calibrated neighbour models, or the joint model where
            ``weight`` is a number or ``alpha`` is ``"bound"``; ``"joint"``, or a
            :class:`~nbmodels.estimators.options.JointGraph`, for the graph's model; ``"cross_fit"``
            for users that learn from the given labels of other items alone, weighted as far as they
            predict labels.
        duplicates: pairs that occur more than once: ``"count"`` every occurrence, take them
            ``"once"``, or ``"refuse"``; ``"auto"`` averages models that count every occurrence, the
            logarithm of one more than their number, and each pair once, by held-out labels, and
            takes three times as long where pairs occur more than once. Outside of the average of
            neighbour models it counts.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), or a known
            ``(K, K)`` matrix ``[observed, true]`` whose columns sum to one; ``"auto"`` for a full
            one where held-out labels reward it, corrected labels averaged over both where that is
            open, and posterior draws over a full and a hierarchical matrix and one by two halves
            of the users (:mod:`nbmodels.posterior.noise_by_halves`); ``"symmetric"`` outside of the
            average of neighbour models.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`
            with the limits of the iteration.
        random_state: seed of restarts and posterior draws; None takes others each time. The folds
            of the same items are the same for every seed, and in an average of models for every
            order of items and users, too.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the items.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
        items_: ``(N,)`` ids of the items.
        users_: ids of the users.
        user_proportions_: (users, classes) posterior mean of the users' proportions.
        alpha_: concentration used; the mean of several in an average of models.
        weight_: power of the edges used, or slope of the average's log-probabilities; 0 where they
            were found to carry no information.
        noise_fit_: the fit of the noise alone, where it was cross-fitted, or None.
        choice_: data frame of the settings compared, or None.
        error_rates_: data frame of how often labels are wrong by the number of users of their
            items; None where that is taken to be the same, as outside of the average.
        objective_trace_: the evidence bound at every fifth step of plain joint updates.

    Examples:
        >>> import numpy as np
        >>> from scipy import sparse
        >>> from nbmodels import CollaborativeClassifier
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, likes = rng.integers(0, 2, 150), rng.integers(0, 2, 30)  # of items, of users
        >>> visits = sparse.csr_array(rng.poisson(np.where(likes[:, None] == truth, 0.6, 0.1)))
        >>> names = np.array(["ant", "bee"])
        >>> y = names[corrupt(truth, uniform_noise(2, 0.2), rng)]
        >>> model = CollaborativeClassifier(random_state=0).fit(visits, y)
        >>> print((y == names[truth]).sum(), (model.predict() == names[truth]).sum())  # of 150
        126 150
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "noise": Noise(("auto", "full", "symmetric")),
        "weight": Number(words=("auto",)),
        "alpha": Concentration(),
        "noise_diagonal": Number(),
        "training": GraphTraining(),
        "noise_folds": NoFoldsOrMore(),
    }
    _stride = 5

    _is_source: ClassVar[bool] = True

    def __init__(
        self,
        *,
        alpha: ArrayLike | Literal["auto", "bound"] = "auto",
        weight: float | Literal["auto"] = "auto",
        training: Literal["auto", "joint", "cross_fit"] | JointGraph = "auto",
        duplicates: Literal["auto", "count", "once", "refuse"] = "auto",
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        solver: SolverName | Solver = "vb",
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.weight = weight
        self.training = training
        self.duplicates = duplicates
        self.noise = noise
        self.class_prior = class_prior
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.solver = solver
        self.random_state = random_state

    @classmethod
    def published(
        cls, n_classes: int, delta: float = 0.1, alpha: Any = 1.0, **options: Any
    ) -> Self:
        """Algorithm 1 as printed: labels wrong with a known probability ``delta``, no learning.

        Args:
            n_classes: K.
            delta: probability that a label is wrong, above 0.
            alpha: concentration of the users' proportions.
            options: other parameters.
        """
        noise = np.full((n_classes, n_classes), delta / (n_classes - 1))
        np.fill_diagonal(noise, 1 - delta)
        fixed = {
            "noise": noise,
            "class_prior": np.full(n_classes, 1 / n_classes),
            "weight": 1.0,
            "training": JointGraph(collapsed=False, noise_folds=0),
            "solver": Solver(method="vb", accelerate=False),
        }
        return cls(**{**fixed, "alpha": alpha, **options})

    def _configured(self, name: str, value: Any) -> Any:
        if name == "training":
            named = isinstance(value, str) and value in ("auto", "joint")
            return JointGraph() if named else value
        return super()._configured(name, value)

    # Fitting ------------------------------------------------------------------------------------

    def fit(
        self,
        interactions: Any,
        labels: Any,
        sample_weight: Any = None,
        trusted: Any = None,
        *,
        items: Any = None,
        item_prior: Any = None,
        **others: Any,
    ) -> Self:
        """Fit to a graph and the items' noisy labels.

        Args:
            interactions: SciPy sparse matrix (users, items) of counts, or a data frame with columns
                ``user`` and ``item``, found by these names or usual others (``customer``,
                ``author``, ``product_id``, ``document``), a row an interaction, ids of any kind.
            labels: one label an item, in the order of ``items``, or of the sorted ids; or a mapping
                or series by item id, in which items may lack and items without users may occur.
            sample_weight: (items,) weights, 0 or more; or a mapping or series by item id.
            trusted: (items,) checked labels, null where unchecked; or a mapping or series of some,
                by item id.
            items: ids of the items, in the order of ``labels``.
            item_prior: (items, classes) prior probabilities of each item, the paper's beta where it
                is more than a noisy label; None for none. A data frame goes by the items' ids in
                its index.
            others: none; arguments of other estimators' ``fit`` are refused by name.

        Raises:
            TypeError: an argument that is not among these.
            DataError: bad input, naming the argument and the row.
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``.

        Warns:
            IdentifiabilityWarning: the noise matrix is not diagonally dominant, another form of it
                is about as likely, or two halves of the users surely find another share of wrong
                labels than calibrated neighbours.
            NotConvergedWarning: the updates did not come to rest.
            NbmodelsWarning: labels go by the items' order, which is that of their sorted ids, and
                the ids occur in another one.
        """
        refuse_arguments(type(self).__name__, others)
        parameters = self._validate()
        if labels is None:
            raise DataError(
                "labels: a graph needs one noisy label an item; where there are votes or checked "
                "labels alone, see JointNB"
            )
        labels = by_item_id(labels)
        known = labelled_items(interactions, labels) if items is None else items
        graph = read_graph(interactions, known, duplicates=self.duplicates)
        n_items = len(graph.items)
        y = of_items("labels", labels, graph.items)
        # an item that a mapping leaves out has no label, and needs no marker to say so
        by_id = np.nan if y is not labels else None
        with with_names_of_graphs() as renamed:
            read = read_labels(
                y,
                n_items,
                reader=type(self).__name__,
                declared=self.classes,
                marker=by_id if self.missing_label is None else self.missing_label,
                trusted=of_items("trusted", trusted, graph.items),
            )
        in_order = items is None and y is labels
        cautions = *renamed, *graph_cautions(interactions, labels, graph, in_order=in_order)
        parameters = self._by_class(parameters, read.classes)
        sources, k = label_sources(read), len(read.classes)
        if item_prior is not None:
            shares = read.classes.in_order("item_prior", item_prior, axes=(1,))
            shares = rows_of_items(shares, graph.items)
            sources["beliefs"] = item_prior_source(shares, n_items, k)
        weights = check_weights(item_weights(sample_weight, graph.items), n_items)
        with computing(self._double(graph.edges.nnz * k)):
            about = (graph.edges, sources, weights, read.classes.names, self._options())
            if self._is_averaged():
                alpha = None if is_auto(self.alpha) else self._alpha(len(graph.users), k)
                fitted: FittedModel = train_stacked(
                    parameters, alpha, *about, self._readings(graph.edges)
                )
            else:
                settings = self._graph_settings(parameters, len(graph.users), k)
                train = train_cross_fitted if self.training == "cross_fit" else train_joint
                fitted = train(settings, *about)
        self.items_, self.users_ = graph.items, graph.users
        self._labels = read
        return self._finish(with_separable(fitted, points(graph.edges)), cautions)

    def _is_averaged(self) -> bool:
        """Whether an average of models is fitted, and not one model of the graph."""
        bound = isinstance(self.alpha, str) and not is_auto(self.alpha)
        return is_auto(self.training) and is_auto(self.weight) and not bound

    def _readings(self, edges: sparse.csr_array) -> Sequence[str | None]:
        """What repeated edges may say, where that is to be found out."""
        return READINGS if is_auto(self.duplicates) and has_repeats(edges) else (None,)

    def _graph_settings(
        self, parameters: Mapping[str, Any], n_users: int, n_classes: int
    ) -> GraphSettings:
        """What training on a graph needs of the parameters."""
        open_alpha = isinstance(self.alpha, str)
        noise = "symmetric" if is_auto(self.noise) else parameters["noise"]
        return GraphSettings(
            labels={**parameters, "noise": noise},
            alpha=1.0 if open_alpha else self._alpha(n_users, n_classes),
            select_alpha=is_auto(self.alpha),
            learn_alpha=open_alpha and not is_auto(self.alpha),
            weight=1.0 if is_auto(self.weight) else float(self.weight),
            select_weight=is_auto(self.weight),
            collapsed=parameters.get("collapsed", True),
            noise_folds=int(parameters.get("noise_folds", 0)),
        )

    def _validate(self) -> dict[str, Any]:
        parameters = super()._validate()
        bound = isinstance(self.alpha, str) and self.alpha == "bound"
        if self.training == "cross_fit" and bound:
            raise DataError(
                "alpha: 'bound' is of the joint model; cross-fitting takes numbers or 'auto'"
            )
        if self._rule == "ml" and bound:
            raise DataError("alpha: method 'ml' has no prior to learn; take 'map' or 'vb'")
        return parameters

    def _alpha(self, n_users: int, k: int) -> Any:
        if isinstance(self.alpha, str):
            return 1.0
        alpha = as_floats("alpha", self.alpha)
        try:
            full = np.broadcast_to(alpha, (n_users, k))
        except ValueError as error:
            raise DataError(
                f"alpha: an array of shape {alpha.shape} does not broadcast to {n_users} users and "
                f"{k} classes"
            ) from error
        bad = np.argwhere(~(np.isfinite(full) & (full > 0)))
        if len(bad):
            raise DataError(f"alpha: row {bad[0][0]} holds {full[tuple(bad[0])]}; expected above 0")
        return alpha

    # As one source among others -----------------------------------------------------------------

    def _source_items(self, values: Any) -> int | None:
        """Columns of a matrix; None for a table, where a row is an interaction."""
        return int(values.shape[1]) if sparse.issparse(values) else None

    def _source_classes(self, values: Any) -> np.ndarray | None:
        """None: interactions name no class."""
        return None

    def _source_learn(self, values: Any, items: Items) -> LearnedSource:
        """The users' emission, or what the edges of ``items`` say of them; see :class:`Source`."""
        parameters = self._validate()
        if self.training == "cross_fit":
            raise DataError("training: a source beside others is fitted jointly; expected 'joint'")
        graph = read_graph(values, items.ids, duplicates=self.duplicates)
        self.users_ = graph.users
        k = len(items.classes)
        alpha = self._alpha(len(graph.users), k)
        kept = None if isinstance(self.alpha, str) else alpha
        crossed = CrossFittedGraph(graph.edges, graph.users, self.duplicates, kept)
        if self._is_averaged():
            return crossed.without_weight(k)
        settings = self._graph_settings(parameters, len(graph.users), k)
        users = Users.of(len(graph.users), k, settings.alpha)
        users = replace(users, weight=settings.weight, integrated=True)
        selected = settings.select_alpha or settings.select_weight
        part = Part(
            users,
            Users.pack(graph.edges),
            alternatives=_alternatives(settings, users) if selected else (),
            edges=Edges.of(graph.edges) if settings.collapsed else None,
            pooled=settings.learn_alpha,
        )
        encode = EdgesOf(graph.users, self.duplicates)
        coords = {USERS: {"user": graph.users}}
        return LearnedSource({USERS: part}, encode, coords=coords, crossed=crossed)

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def user_proportions_(self) -> np.ndarray:
        """``(users, K)`` posterior mean of the share of each class in a user's interactions."""
        return np.asarray(self.fit_.params[USERS].mean, float)

    @property
    def alpha_(self) -> Any:
        """Concentration used: a number, or an array (users, classes)."""
        check_is_fitted(self)
        return self.fitted_.settings["alpha"]

    @property
    def weight_(self) -> float:
        """Power of the edges used; in a cross-fitted model the slope of their scores."""
        check_is_fitted(self)
        return self.fitted_.settings["weight"]

    @property
    def noise_fit_(self) -> Any:
        """The fit of the noise alone, where it was cross-fitted, or None."""
        check_is_fitted(self)
        return self.fitted_.settings.get("noise_fit")

    def _of_graph(self) -> bool:
        return True

    def _item_names(self) -> Any:
        return self.items_

    def _coords(self) -> dict[str, Mapping[str, Any]]:
        return {USERS: {"user": self.users_}}

    def _reported(self, draws: Any, rng: np.random.Generator) -> Any:
        """Draws of the noise matrix are in part by two halves of the users."""
        from nbmodels.posterior.noise_by_halves import pooled_with_halves

        about = self.fitted_.by_halves if isinstance(self.fitted_, FittedGraph) else None
        return pooled_with_halves(draws, about, rng)

    def corrected_labels(self) -> pd.DataFrame:
        """As :meth:`NoisyBernoulliNB.corrected_labels`; ``row`` is the item."""
        check_is_fitted(self)
        return self._corrected(self._item_names(), self._labels.given, self._labels.codes)

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, interactions: Any = None) -> np.ndarray:
        """``(n, K)`` P(true class | users) of new items, by the users of the fit.

        Args:
            interactions: sparse matrix (users, new items) with the users of the fit in the order of
                ``users_``, or pairs of ids; pairs with users that the fit does not know are
                ignored. The fitted items' posterior, labels included, where None.

        Raises:
            DataError: bad input, or a matrix with another number of users.
        """
        check_is_fitted(self)
        if interactions is None:
            return self.label_posterior_
        edges = edges_to_known(self.users_, interactions, duplicates=self.duplicates)
        if isinstance(self.fitted_, FittedGraph):
            return self.fitted_.predict_new(edges)
        if self.fitted_.scored:
            with computing(self.fitted_.double):
                data = Data({USERS: Users.pack(edges)}, on_device(np.ones(edges.shape[0])))
                return self.fitted_.predict(data)
        logs = np.asarray(self.fit_.params[USERS].likelihood_params("vb"), float)
        table = self.class_log_prior_ + self.weight_ * (edges @ logs)
        resp = np.exp(table - table.max(1, keepdims=True))
        return resp / resp.sum(1, keepdims=True)

    def _predicted_ids(self, interactions: Any) -> np.ndarray:
        """Of the items that :meth:`predict` answers for, in its order."""
        if interactions is None:
            return self.items_
        return read_graph(interactions, users=self.users_, duplicates=self.duplicates).items

    def predict(self, interactions: Any = None) -> np.ndarray:
        """``(n,)`` likeliest true class of items; arguments as :meth:`predict_proba`."""
        best = self.predict_proba(interactions).argmax(1)
        return self.classes_[best]


def _alternatives(settings: GraphSettings, users: Users) -> tuple[Alternative, ...]:
    """The users under all settings that may be selected, the first without the edges."""
    tried, found = alternatives(settings, users)
    names = [{"alpha": alpha, "weight": weight} for alpha, weight in tried]
    return tuple(map(Alternative, names, found))
