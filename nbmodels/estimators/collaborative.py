"""Items known by the users who touch them, with noisy labels: collaborative classification."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, cast

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from nbmodels.channels import ExternalEvidence
from nbmodels.channels.fixed import held
from nbmodels.core.component import Component, Given
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.labels import Classes
from nbmodels.data.user_item_graph import Graph, item_labels, labelled_items, read_graph
from nbmodels.data.validation import as_floats, check_nonnegative, check_weights
from nbmodels.emissions import Users
from nbmodels.errors import DataError, IdentifiabilityWarning, NbmodelsWarning
from nbmodels.estimators.labels import LabelledClassifier, LabelSource
from nbmodels.estimators.latent import with_inherited_parameters
from nbmodels.estimators.settings import choice_table, is_auto
from nbmodels.estimators.sources import Part
from nbmodels.fitting.cross_fitted import Candidate, fit_cut, posterior_of_new, without
from nbmodels.fitting.duplicate_users import grouped
from nbmodels.fitting.em import Fit, complain
from nbmodels.fitting.graph import Edges, given_shares
from nbmodels.fitting.holdout import compare, noise_unseen, predicted_unseen
from nbmodels.fitting.selection import Settings

_USERS = "users"

#: Settings that are compared on labels held out: concentrations of the users, powers of the edges.
ALPHAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
WEIGHTS = (0.3, 1.0)

#: The chosen concentration is varied by these factors while the noise is learned, in two rounds.
_STEPS, _ROUNDS = (0.5, 1.0, 2.0), 2


@with_inherited_parameters
class CollaborativeClassifier(LabelledClassifier):
    """Corrects items' labels by who interacts with what (Maystre 2021), and learns the noise.

    Users interact with the classes in proportions of their own, ``u ~ Dirichlet(alpha)``; items of
    one user are likely to be of one class. The published algorithm lets an item vote for its own
    label through its users, and takes the noise, alpha and the edges' worth as given: on graphs
    whose edges say little it makes labels worse than it found them. By default an item's own vote
    is left out of its users' counts (``collapsed``), the noise is learned, and alpha and the power
    of the edges are those that best predict labels held out, or no edges at all where none
    predicts them better than chance. The shares of the classes are held at those of the given
    labels unless ``class_prior`` says otherwise: learned beside a graph they run off to one class.
    :meth:`published` gives the algorithm as printed.

    Parameters:
        alpha: concentration of the users' proportions: a number, an array that broadcasts to
            (users, classes), ``"auto"`` (chosen by held-out labels), or ``"bound"`` (empirical
            Bayes: maximises the evidence bound).
        weight: power of the edges, a number or ``"auto"``.
        collapsed: leave an item's own vote out of its users' counts.
        feedback: ``"full"`` for the graph's model; ``"cut"`` for users that learn from the given
            labels of other items alone, believed as far as they predict labels. No belief flows
            back: neighbours would echo an item's own label, and seem to be rewarded for it.
        cross_fit: number of folds by which the noise is learned from what the graph says of items
            whose label it has not seen; 0 to learn it within the fit, where labels echo.
        item_prior: (items, classes) prior probabilities of each item, the paper's beta where it is
            more than a noisy label; None for none.
        duplicates: pairs that occur more than once: ``"count"`` every occurrence, ``"once"``,
            ``"refuse"``.
    """

    _stride = 5

    attributes_doc = """
    items_: ``(N,)`` ids of the items.
    users_: ids of the users.
    user_proportions_: (users, classes) posterior mean of the users' proportions.
    alpha_: concentration used.
    weight_: power of the edges used; 0 where they were found to say nothing.
    noise_fit_: the fit of the noise alone, where it was cross-fitted, or None.
    objective_trace_: the evidence bound at every fifth step, where ``collapsed`` and ``accelerate``
        are off; collapsed updates climb none.
    held_out_: data frame of the settings compared, or None.
    """

    def __init__(
        self,
        *,
        alpha: Any = "auto",
        weight: Any = "auto",
        collapsed: bool = True,
        feedback: Literal["full", "cut"] = "full",
        cross_fit: int = 5,
        item_prior: Any = None,
        duplicates: Literal["count", "once", "refuse"] = "count",
        noise: Any = "symmetric",
        method: Literal["ml", "map", "vb"] = "vb",
        **shared: Any,
    ) -> None:
        super().__init__(noise=noise, method=method, **shared)
        self.alpha = alpha
        self.weight = weight
        self.collapsed = collapsed
        self.feedback = feedback
        self.cross_fit = cross_fit
        self.item_prior = item_prior
        self.duplicates = duplicates

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
        fixed = {"noise": noise, "class_prior": np.full(n_classes, 1 / n_classes)}
        plain = {"weight": 1.0, "collapsed": False, "cross_fit": 0, "accelerate": False}
        return cls(**fixed | plain | {"alpha": alpha} | options)

    # Fitting ------------------------------------------------------------------------------------

    def fit(
        self,
        interactions: Any,
        labels: Any,
        sample_weight: Any = None,
        trusted: Any = None,
        *,
        items: Any = None,
    ) -> Self:
        """Fit to a graph and the items' noisy labels.

        Args:
            interactions: SciPy sparse matrix (users, items) of counts, or a data frame with columns
                ``user`` and ``item``, a row an interaction, ids of any kind.
            labels: one label an item, in the items' order; or a mapping or series by item id, in
                which items may lack and items without users may occur.
            sample_weight: (items,) weights, 0 or more.
            trusted: (items,) checked labels, null where unchecked, or a mapping position -> label.
            items: ids of the items, in the order of ``labels``.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            IdentifiabilityWarning: the noise matrix is not diagonally dominant.
            NotConvergedWarning: the updates did not come to rest.
        """
        self._check_parameters()
        known = labelled_items(interactions, labels) if items is None else items
        graph = read_graph(interactions, known, duplicates=self.duplicates)
        n_items = len(graph.items)
        y = item_labels(labels, graph.items)
        # an item that a mapping leaves out has no label, and needs no marker to say so
        by_id = y is not labels
        classes, sources = self._labels(y, n_items, trusted, marker=np.nan if by_id else None)
        weights = check_weights(sample_weight, n_items)
        with jax.enable_x64(self._double(graph.edges.nnz * len(classes))):
            self._fit(graph, classes, sources, weights)
        self.items_, self.users_ = graph.items, graph.users
        self._rows = pd.Index(graph.items)
        return self

    def _fit(
        self,
        graph: Graph,
        classes: Classes,
        sources: dict[str, LabelSource],
        weights: np.ndarray,
    ) -> None:
        n_items, k = len(weights), len(classes)
        model: dict[str, Component] = {PRIOR: self._prior(k)}
        parts: dict[str, Any] = {PRIOR: None}
        for name, source in sources.items():
            model[name], parts[name] = source.component(), source.padded(n_items)
        if self.item_prior is not None:
            model["beliefs"] = ExternalEvidence.of(k)
            parts["beliefs"] = ExternalEvidence.pack(self._beliefs(n_items, k))
        alpha = self._alpha(len(graph.users), k)
        if self.feedback != "full":
            self._fit_cut(graph, model, parts, weights, classes, alpha)
            return
        edges, multiplicity = graph.edges, np.ones(1)
        # a concentration learned from the bound needs every user
        self._grouped = grouped(edges) if np.ndim(alpha) == 0 and not self._pooled() else None
        if self._grouped is None:
            model[_USERS] = Users.of(len(graph.users), k, alpha)
        else:
            model[_USERS] = self._grouped.users(float(alpha), k)
            edges, multiplicity = self._grouped.edges, self._grouped.multiplicity
        parts[_USERS] = Users.pack(edges)
        data = Data(parts, jnp.asarray(weights))
        if self.class_prior is None:
            model[PRIOR] = given_shares(model, data, self.class_alpha)
        self._folds = self._seed()
        self._graphs = {_USERS: Edges.of(edges, multiplicity)} if self.collapsed else {}
        self.held_out_: pd.DataFrame | None = None
        model[_USERS] = replace(model[_USERS], weight=_number(self.weight))
        if "auto" in (_word(self.alpha), _word(self.weight)):
            model = self._chosen(model, data)
        self.noise_fit_: Fit | None = None
        if not isinstance(model["labels"], Given):
            if model[_USERS].weight == 0:
                warnings.warn(
                    "the edges do not predict held-out labels better than chance: no label is "
                    "corrected, and the noise matrix is that of the prior",
                    IdentifiabilityWarning,
                    stacklevel=3,
                )
                channel = model["labels"]
                model["labels"] = held(channel, channel.likelihood_params(channel.prior, "mean"))
            elif self.cross_fit:
                model = self._refined(model, data, classes.names)
        self._solve(model, data, classes, n_items)
        if self._grouped is not None:
            self.fit_ = self._grouped.expanded(self.fit_, _USERS)
        self._edges = graph.edges
        users: Any = self.fit_.model[_USERS]
        self.weight_ = float(users.weight)
        concentration = np.asarray(users.prior.concentration, float)
        self.alpha_ = float(concentration.flat[0]) if np.ptp(concentration) == 0 else concentration

    def _fit_cut(
        self,
        graph: Graph,
        model: dict[str, Component],
        parts: dict[str, Any],
        weights: np.ndarray,
        classes: Classes,
        alpha: Any,
    ) -> None:
        """Fit with the users' proportions learned out of fold; see :mod:`nbmodels.fitting.cross_fitted`."""
        n_users, k = len(graph.users), len(classes)
        data = Data({**parts, _USERS: Users.pack(graph.edges)}, jnp.asarray(weights))
        chosen = is_auto(self.alpha)
        grid = {"alpha": ALPHAS[::-1]} if chosen else {}
        users = {a: Users.of(n_users, k, a) for a in ALPHAS} if chosen else {}

        def make(settings: Settings) -> Candidate:
            one = users[settings["alpha"]] if chosen else Users.of(n_users, k, alpha)
            return Candidate({**model, _USERS: one}, data)

        self._grouped, self._graphs, self.noise_fit_ = None, {}, None
        how = self._how(model, classes.names)
        with self._report() as report, self._bar("choosing settings") as bar:
            found = fit_cut(
                make,
                (_USERS,),
                begin={name: values[0] for name, values in grid.items()},
                grid=grid,
                rounds=0,
                tried=bar.update,
                report=report,
                **how,
            )
        self._keep(found.fit, data, classes, len(weights))
        self.held_out_ = choice_table(found)
        self._edges = graph.edges
        self.alpha_ = found.settings.get("alpha", alpha)
        self.weight_ = float(found.fit.point[PRIOR][0])

    def _pooled(self) -> tuple[str, ...]:
        return (_USERS,) if _word(self.alpha) == "bound" else ()

    def _alternatives(self, users: Users) -> tuple[list[tuple[float | None, float]], list[Users]]:
        """Settings to compare, the first with no say for the edges, and ``users`` under each."""
        alphas = ALPHAS if _word(self.alpha) == "auto" else (None,)
        powers = WEIGHTS if _word(self.weight) == "auto" else (_number(self.weight),)
        settings = [(None, 0.0), *itertools.product(alphas, powers)]
        found = []
        for alpha, weight in settings:
            one = users
            if alpha is not None:
                n_users, k = users.prior.concentration.shape
                one = replace(users, prior=Users.of(n_users, k, alpha).prior)
            found.append(replace(one, weight=weight))
        return settings, found

    def _chosen(self, model: dict[str, Component], data: Data) -> dict[str, Component]:
        """The model with the alpha and weight under which held-out labels are likeliest."""
        settings, found = self._alternatives(cast(Users, model[_USERS]))
        candidates = [{**model, _USERS: users} for users in found]
        rng = np.random.default_rng(self._folds)
        with self._bar("choosing settings", len(candidates)) as bar:
            compared = compare(
                candidates, [data] * len(candidates), partial(self._runs, bar=bar), rng
            )
        self.held_out_ = pd.DataFrame(settings, columns=["alpha", "weight"]).assign(
            log_likelihood=compared.log_likelihood,
            gain=compared.gain,
            standard_error=compared.standard_error,
            identified=compared.identified,
        )
        return candidates[compared.best]

    def _refined(
        self, model: dict[str, Component], data: Data, names: np.ndarray
    ) -> dict[str, Component]:
        """The model with the noise, and an alpha near the chosen one, that suit unseen labels.

        Twice over: what is found of the noise is used by the second round's fits.
        """
        channel = model["labels"]
        with self._bar("learning the noise", _ROUNDS * len(_STEPS) * self.cross_fit) as bar:
            for _ in range(_ROUNDS):
                found = []
                for step in _STEPS if _word(self.alpha) == "auto" else (1.0,):
                    users: Any = model[_USERS]
                    prior = replace(users.prior, concentration=step * users.prior.concentration)
                    tried = {**model, _USERS: replace(users, prior=prior)}
                    # the same folds for every candidate
                    rng = np.random.default_rng(self._folds)
                    run = partial(self._runs, bar=bar)
                    resp = predicted_unseen(tried, data, run, rng, folds=self.cross_fit)
                    key = jax.random.key(self._folds)
                    # a candidate that says nothing of the classes is passed over
                    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
                        alone, told = noise_unseen(
                            {**tried, "labels": channel}, data, resp, key, rule=self.method
                        )
                    score = float(data.weights @ alone.log_likelihood)
                    found.append(((not alone.confused, score), alone, told, tried))
                _, alone, told, model = max(found, key=lambda one: one[0])
                model = {**model, "labels": held(alone.model["labels"], alone.point["labels"])}
                self.noise_fit_, self._noise_data = alone, jax.tree.map(np.asarray, told)
        complain(alone.confused, names, alone.status)
        return model

    def _sampled(self) -> tuple[Fit, Data]:
        """Draws are of the noise alone where it was cross-fitted: in the fit it is held."""
        if self.feedback != "full":
            fitted, data = super()._sampled()
            return without(fitted, [_USERS]), data
        if self.noise_fit_ is None:
            fitted, data = super()._sampled()
            if self._grouped is not None:  # each user has draws of their own
                with jax.enable_x64(self._double_):
                    data = replace(data, parts={**data.parts, _USERS: Users.pack(self._edges)})
            return fitted, data
        return self.noise_fit_, self._noise_data

    # Parameters ---------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, words in (("alpha", ("auto", "bound")), ("weight", ("auto",))):
            value = getattr(self, name)
            if isinstance(value, str) and value not in words:
                known = " or ".join(map(repr, words))
                raise DataError(f"{name}: expected numbers or {known}, got {value!r}")
        if self.feedback not in ("full", "cut"):
            raise DataError(f"feedback: expected 'full' or 'cut', got {self.feedback!r}")
        if self.feedback != "full" and _word(self.alpha) == "bound":
            raise DataError("alpha: 'bound' is of the joint model; a cut takes numbers or 'auto'")
        if self._pools_noise:
            raise DataError("noise: beside a graph the noise is cross-fitted, never 'pooled'")
        if not isinstance(self.weight, str):
            check_nonnegative("weight", self.weight)
        if not (
            isinstance(self.cross_fit, int | np.integer)
            and (self.cross_fit == 0 or self.cross_fit > 1)
        ):
            raise DataError(f"cross_fit: expected 0, or 2 or more folds; got {self.cross_fit!r}")
        if self.method == "ml" and _word(self.alpha) == "bound":
            raise DataError("alpha: method='ml' has no prior to learn; take 'map' or 'vb'")

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

    def _beliefs(self, n_items: int, k: int) -> np.ndarray:
        prior = as_floats("item_prior", self.item_prior)
        if prior.shape != (n_items, k):
            raise DataError(f"item_prior: expected shape {(n_items, k)}, got {prior.shape}")
        bad = np.flatnonzero(~(np.isfinite(prior) & (prior >= 0)).all(1) | ~(prior.sum(1) > 0))
        if len(bad):
            raise DataError(
                f"item_prior: row {bad[0]} is {prior[bad[0]].tolist()}; expected probabilities, "
                "of which one at least is above 0"
            )
        with np.errstate(divide="ignore"):
            return np.log(prior / prior.sum(1, keepdims=True))

    # As one source among others -----------------------------------------------------------------

    def _source_items(self, values: Any) -> int | None:
        """Columns of a matrix; None for a table, where a row is an interaction."""
        return int(values.shape[1]) if sparse.issparse(values) else None

    def _source_classes(self, values: Any) -> np.ndarray | None:
        """None: interactions name no class."""
        return None

    def _source_learn(
        self, values: Any, items: np.ndarray, classes: Classes, weights: np.ndarray
    ) -> dict[str, Part]:
        """The users' emission with the edges of ``items``; see :class:`Source`."""
        CollaborativeClassifier._check_parameters(self)
        if self.feedback != "full":
            raise DataError("feedback: a source beside others cannot be cut; expected 'full'")
        graph = read_graph(values, items, duplicates=self.duplicates)
        self.users_ = graph.users
        n_users, k = len(graph.users), len(classes)
        users = Users.of(n_users, k, self._alpha(n_users, k))
        users = replace(users, weight=_number(self.weight))
        asked = "auto" in (_word(self.alpha), _word(self.weight))
        part = Part(
            users,
            Users.pack(graph.edges),
            alternatives=tuple(self._alternatives(users)[1]) if asked else (),
            edges=Edges.of(graph.edges) if self.collapsed else None,
            pooled=_word(self.alpha) == "bound",
        )
        return {_USERS: part}

    def _source_apply(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        """Edges of new items to the users of the fit; see :class:`Source`."""
        graph = read_graph(values, items, duplicates=self.duplicates)
        return {_USERS: Users.pack(_edges_to(self.users_, graph))}

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def user_proportions_(self) -> np.ndarray:
        """``(users, K)`` posterior mean of the share of each class in a user's interactions."""
        check_is_fitted(self)
        return np.asarray(self.fit_.params[_USERS].mean, float)

    def predict_proba(self, interactions: Any = None) -> np.ndarray:
        """``(n, K)`` P(true class | users) of new items, by the users of the fit.

        Args:
            interactions: sparse matrix (users, new items) with the users of the fit in their order,
                or pairs of ids; pairs with users that the fit does not know say nothing. The fitted
                items' posterior, labels included, where None.
        """
        check_is_fitted(self)
        if interactions is None:
            return self.label_posterior_
        edges = _edges_to(self.users_, read_graph(interactions, duplicates=self.duplicates))
        if self.feedback != "full":
            with jax.enable_x64(self._double_):
                model = jax.tree.map(jnp.asarray, self.fit_.model)
                data = Data({_USERS: Users.pack(edges)}, jnp.ones(edges.shape[0]))
                resp = np.asarray(
                    posterior_of_new(model, self.fit_.params, data, (_USERS,), self.fit_.rule),
                    float,
                )
            return resp / resp.sum(1, keepdims=True)
        logs = np.asarray(self.fit_.params[_USERS].likelihood_params("vb"), float)
        table = self.class_log_prior_ + self.weight_ * (edges @ logs)
        resp = np.exp(table - table.max(1, keepdims=True))
        return resp / resp.sum(1, keepdims=True)


def _edges_to(users: np.ndarray, graph: Graph) -> sparse.csr_array:
    """``(N, users)`` edges to known users; those to others say nothing."""
    place = pd.Index(users).get_indexer(pd.Index(graph.users))
    edges = graph.edges.tocoo()
    known = place[edges.col] >= 0
    where = (edges.row[known], place[edges.col[known]])
    shape = (len(graph.items), len(users))
    return sparse.coo_array((edges.data[known], where), shape=shape).tocsr()


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float:
    return 1.0 if isinstance(value, str) else float(value)
