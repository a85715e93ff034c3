"""Out-of-fold scores of the features, and the labels' model that takes them as its class prior.

A model of features given classes that is refitted with its own responsibilities becomes more
certain with every round: where its assumptions fail, it leaves the labels and clusters. Here the
features' parameters come from given responsibilities of other items only (cross-fitting), and how
far their evidence counts is learned with the noise (:class:`nbmodels.class_priors.Calibration`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from inference.arrays import floating, on_device
from inference.compilation import host_jit
from nbmodels.class_priors import Calibration, FixedProportions, HeldCalibration
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model, with_role
from nbmodels.core.roles import LabelChannel
from nbmodels.errors import DataError
from nbmodels.fitting.by_fold import (
    FoldedFeatures,
    folded_features,
    other_folds,
    scored_by_fold,
    scored_fold,
    summed_by_fold,
)
from nbmodels.fitting.em import emissions_started
from nbmodels.fitting.label_sources import CANDIDATES

Settings = Mapping[str, Any]

#: Rows from which on features are laid out by fold; on fewer that takes longer than the passes.
_MANY_ROWS = 4096

#: Seed of the folds.
_FOLD_SEED = 0

#: Standard deviation of a bias about the logarithm of its class's share of the given labels.
_BIAS_SD = 1.0

#: Standard deviation of a bias beside scores that hold the shares.
_WIDE_SD = 3.0

#: Standard deviation of a bias in fits to label sets. Few sets, or sets that may be wrong, are the
#: likelier the more one class of theirs is predicted for everything. Of 162 tables of 100 and 400
#: rows, even and uneven classes, new rows were right in 63.2 % with the others and 64.4 % so, and
#: 27 and 22 % of the fits lost more than three points to plain classifiers.
_OF_SETS_SD = 0.25


def cautious(grid: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The first, cautious value of each open setting."""
    return {name: values[0] for name, values in grid.items()}


class Candidate(NamedTuple):
    """A model with the data encoded for it.

    Attributes:
        model: components by name.
        data: encoded data.
        learned: names of the components whose prior is learned (empirical Bayes).
    """

    model: Model
    data: Data
    learned: tuple[str, ...] = ()


class ScoredLabels(Protocol):
    """Labels with out-of-fold scores of the features, under given settings.

    Attributes:
        without_shares: whether scores are likelihoods, which do not hold the classes' shares.
    """

    without_shares: ClassVar[bool]

    def labels(self, settings: Settings) -> Candidate:
        """Class prior and label channels, without the features."""

    def scores(self, settings: Settings, resp: Array, folds: Sequence[int] | None = None) -> Array:
        """``(N, K)`` scores of each item, learned from the responsibilities of other folds.

        Args:
            settings: value by setting.
            resp: ``(N, K)`` responsibilities, by which scores may be kept: the same object.
            folds: those whose items' scores are needed, where others can be saved; None for all.
        """

    def nested_scores(self, settings: Settings, resp: Array, without: int, *, own: bool) -> Any:
        """``(N, K)`` scores of which none is learned from an item of one fold.

        Those of items of the other folds are learned without the item itself.

        Args:
            settings: value by setting.
            resp: ``(N, K)`` responsibilities, of which those of that fold are not used.
            without: the fold.
            own: whether scores of its own items are needed, too.
        """

    def fold_scores(self, settings: Settings, resp: Array, fold: int) -> Any:
        """``(M, K)`` scores of a fold's items, in their order, learned from all other items."""

    def all_at_once(self, settings: Settings) -> bool:
        """Whether :meth:`nested_scores` of all folds take about as long as those of one."""

    def scaled(self, settings: Settings, scores: Any, resps: Sequence[Any]) -> Any:
        """Scores of the folds' items from :meth:`nested_scores`, put together, as data of a fit.

        Args:
            settings: value by setting.
            scores: ``(N, K)``.
            resps: by fold, the responsibilities its scores were learned from.
        """


def with_score_prior(
    labels: Candidate,
    scores: Any,
    *,
    log_slope_sd: float = 1.0,
    bias_sd: float | None = None,
    shares: Float[np.ndarray, " k"] | None = None,
) -> Candidate:
    """The labels' model with calibrated scores in the place of the class shares.

    Args:
        labels: class prior and channels.
        scores: ``(N, K)``, up to a constant in each row.
        log_slope_sd: prior standard deviation of the logarithm of the slope.
        bias_sd: that of the biases; None for a wide one.
        shares: ``(K,)`` shares of the classes among the given labels, about which the bias has its
            prior where scores are likelihoods. Scores of clear classes say little of the bias: a
            wide prior leaves it to the chance of a few labels. None where scores hold the shares.
    """
    packed = Calibration.pack(scores)
    about = labels.model[PRIOR], packed, labels.data.weights
    calibration = _calibration(
        *about,
        log_slope_sd=log_slope_sd,
        bias_sd=bias_sd,
        shares=shares,
        of_sets=set(labels.model) == {PRIOR, CANDIDATES},
    )
    data = models.with_parts(labels.data, {**labels.data.parts, PRIOR: packed})
    return Candidate({**labels.model, PRIOR: calibration}, data, labels.learned)


def _calibration(
    prior: Any,
    packed: Float[Array, "n k"],
    weights: Any,
    *,
    log_slope_sd: float,
    bias_sd: float | None,
    shares: Float[np.ndarray, " k"] | None,
    of_sets: bool,
) -> Calibration:
    """The scores' prior in the place of a prior of the class shares, known, held or open."""
    of = partial(Calibration.of, packed.shape[1], log_slope_sd=log_slope_sd)
    if isinstance(prior, FixedProportions):
        known = np.asarray(prior.prior, float)
        return HeldCalibration.keeping(known, packed, weights, log_slope_sd)
    wide = bias_sd or (_WIDE_SD if shares is None else _BIAS_SD)
    if not np.isfinite(prior.log_sd).all():
        if of_sets:
            k = packed.shape[1]
            about = np.full(k, 1 / k) if shares is None else shares
            near = np.full(k, _OF_SETS_SD), np.full(k, wide)
            return HeldCalibration.near_of_likelihoods(about, near, log_slope_sd)
        return of(bias=0.0 if shares is None else np.log(shares), bias_sd=wide)
    sds = np.minimum(wide, prior.log_sd), np.minimum(wide, prior.for_draws().log_sd)
    if shares is not None:
        return HeldCalibration.near_of_likelihoods(shares, sds, log_slope_sd)
    items = np.asarray(prior.prior.concentration, float)  # on the host, where sums are no programs
    held = items / items.sum()
    return HeldCalibration.near(held, sds, packed, weights, log_slope_sd)


#: Arguments of :func:`scored_by_fold` that do not depend on which folds are learned from.
_Summed = tuple[Mapping[str, Component], FoldedFeatures, Array, Mapping[str, Array], dict[str, Any]]


@dataclass
class EmissionScores:
    """Scores of emissions: their log-likelihoods under parameters from the other folds' items.

    Scores are kept for as long as the responsibilities are the same: settings of the noise alone
    do not change them.

    Attributes:
        build: model and data under given settings.
        features: names of the emissions.
        fold: ``(N,)`` fold of each item.
        rule: how parameters are read.
        irrelevant: settings that do not change the features.
    """

    build: Callable[[Settings], Candidate]
    features: Sequence[str]
    fold: Int[np.ndarray, " n"]
    rule: Rule
    irrelevant: Sequence[str] = ("noise", "noise_diagonal")
    without_shares: ClassVar[bool] = True
    _kept: dict[Any, Array] = field(default_factory=dict)
    _of: Array | None = None
    _parts: dict[str, Any] = field(default_factory=dict)
    _folded: FoldedFeatures | None = None
    _sums: tuple[Any, Any, Any] = (None, None, None)  # settings, responsibilities, sums by fold

    def labels(self, settings: Settings) -> Candidate:
        model, data, learned = self.build(settings)
        kept = {name: c for name, c in model.items() if name not in self.features}
        parts = {name: data.parts[name] for name in kept if name != PRIOR}
        return Candidate(kept, models.with_parts(data, parts), learned)

    def scores(self, settings: Settings, resp: Array, folds: Sequence[int] | None = None) -> Array:
        if resp is not self._of:
            self._kept, self._of = {}, resp
        one = folds[0] if folds is not None and len(folds) == 1 else None
        key = repr(({n: v for n, v in settings.items() if n not in self.irrelevant}, one))
        if key not in self._kept:
            self._kept[key] = self._scored(settings, resp, one)
        return self._kept[key]

    def nested_scores(self, settings: Settings, resp: Array, without: int, *, own: bool) -> Array:
        """Of all folds."""
        summed = self._summed(settings, resp)
        if summed is None:
            return self.scores(settings, without_fold(resp, self.fold, without))
        counted = other_folds(len(summed[1].rows), without)
        return scored_by_fold(*summed, on_device(counted), rule=self.rule)

    def fold_scores(self, settings: Settings, resp: Array, fold: int) -> Float[np.ndarray, "m k"]:
        """Of one fold; zeros where a row is padding."""
        here = np.flatnonzero(self.fold == fold)
        summed = self._summed(settings, resp)
        if summed is None:
            return np.asarray(self.scores(settings, resp, [fold]))[here]
        folded: FoldedFeatures = summed[1]
        if folded.at_once:
            return np.asarray(self.nested_scores(settings, resp, fold, own=True))[here]
        counted = on_device(other_folds(len(folded.rows))[fold])
        table = np.asarray(scored_fold(*summed, counted, fold, rule=self.rule))
        rows, own = np.asarray(folded.rows[fold]), np.asarray(folded.own[fold]) > 0
        own &= self.fold[rows] == fold  # padding is spread over the folds
        out = np.zeros((len(here), table.shape[1]), table.dtype)
        out[np.searchsorted(here, rows[own])] = table[own]
        return out

    def scaled(self, settings: Settings, scores: Any, resps: Sequence[Any]) -> Any:
        """As they are."""
        return scores

    def _scored(self, settings: Settings, resp: Array, one: int | None) -> Array:
        """Scores of all folds, or right ones of one fold only."""
        model, data, _ = self.build(settings)
        emissions = {name: model[name] for name in self.features}
        folded = self._by_fold(data) if one is None else None
        if folded is not None:
            about = emissions, folded, data.weights, _powers(emissions, data)
            n_folds = len(folded.rows)
            latent = _latent(emissions, data, resp, self.rule)
            sums, counted = summed_by_fold(*about, resp, latent), on_device(other_folds(n_folds))
            return scored_by_fold(*about, sums, counted, rule=self.rule)
        first, end = (0, int(np.max(self.fold)) + 1) if one is None else (one, one + 1)
        return out_of_fold_log_likelihood(
            emissions, data, resp, self.fold, first=first, n_folds=end, rule=self.rule
        )

    def learned(self, settings: Settings, resp: Any) -> dict[str, Any]:
        """Parameters of the emissions by all items, for new ones."""
        model, data, _ = self.build(settings)
        emissions = {name: model[name] for name in self.features}
        if self._by_fold(data) is not None:
            return emissions_started(emissions, np.asarray(resp), data, self.rule)
        given = on_device(np.asarray(resp), floating())
        return params_of_all(emissions, data, given, rule=self.rule)

    def all_at_once(self, settings: Settings) -> bool:
        """Of large sparse tables."""
        folded = self._by_fold(self.build(settings).data)
        return folded is not None and folded.at_once

    def _summed(self, settings: Settings, resp: Array) -> _Summed | None:
        """Arguments of :func:`scored_by_fold` up to the sums by fold; None of small tables.

        The first responsibilities are those of all sequences, and so are their sums.
        """
        model, data, _ = self.build(settings)
        folded = self._by_fold(data)
        if folded is None:
            return None
        emissions = {name: model[name] for name in self.features}
        about = emissions, folded, data.weights, _powers(emissions, data)
        key, of, sums = self._sums
        if of is not resp or key != repr(settings):
            sums = summed_by_fold(*about, resp, _latent(emissions, data, resp, self.rule))
            self._sums = repr(settings), resp, sums
        return (*about, sums)

    def _by_fold(self, data: Data) -> FoldedFeatures | None:
        """Large tables' features by fold, made once."""
        if len(self.fold) < _MANY_ROWS:
            return None
        parts = {name: data.parts[name] for name in self.features}
        if any(parts[name] is not self._parts.get(name) for name in parts):
            self._parts = parts
            self._folded = folded_features(parts, np.asarray(data.weights), self.fold)
        return self._folded


def _powers(emissions: Mapping[str, Component], data: Data) -> dict[str, Array]:
    return {name: power for name, power in data.powers.items() if name in emissions}


def _latent(
    emissions: Mapping[str, Component], data: Data, resp: Array, rule: Rule
) -> dict[str, Any]:
    """Parameters of components with a latent variable of each item, by all items.

    Scales of heavy tails by parameters that know an item's own label as one of thousands; sums by
    fold are to be taken once, and parameters of each fold would want them many times.
    """
    own = {name: c for name, c in emissions.items() if c.has_latent}
    if not own:
        return {}
    own_data = replace(data, parts={name: data.parts[name] for name in own})
    found: dict[str, Any] = _latent_params(own, resp, own_data, rule)
    return found


@partial(host_jit, static_argnames="rule")
def _latent_params(emissions: Any, resp: Any, data: Data, rule: Rule) -> dict[str, Any]:
    q = models.start(emissions, resp, data, rule)
    return models.likelihood_params(emissions, q, rule)


def without_fold(resp: Any, fold: Int[np.ndarray, " n"], without: int) -> Array:
    """Responsibilities with zeros in a fold."""
    return on_device(np.asarray(resp) * (fold != without)[:, None])


def label_responsibilities(model: Model, data: Data) -> Float[Array, "n k"]:
    """First responsibilities from the labels alone; rows of zeros where there is none.

    Raises:
        DataError: there is no label.
    """
    guess = given_responsibilities(model, data)
    if guess is None:
        raise DataError("y: there is no label to learn the features from")
    return guess


def given_responsibilities(model: Model, data: Data) -> Float[Array, "n k"] | None:
    """Responsibilities from the labels alone; None where there is none."""
    guess = first_responsibilities(model, data)
    return None if guess is None or not np.asarray(guess).any() else guess


def first_responsibilities(model: Model, data: Data) -> Float[Array, "n k"] | None:
    """As the label channels give them, without a program; None where no channel has any."""
    channels = with_role(model, LabelChannel)
    parts = {name: _on_host(data.parts[name]) for name in channels if name in data.parts}
    guess = models.initial_responsibilities(channels, models.with_parts(data, parts))
    return None if guess is None else on_device(guess, floating())


def _on_host(part: Any) -> Any:
    return part.to_host() if hasattr(part, "to_host") else np.asarray(part)


def draw_folds(
    resp: Float[np.ndarray, "n k"] | Array,
    n_folds: int,
    copies: Int[np.ndarray, " n"] | None = None,
) -> Int[np.ndarray, " n"]:
    """Folds with labels spread evenly, the same in every fit to the same rows.

    Small tables are fitted differently with every other draw of the folds: as in scikit-learn, a
    number of folds stands for one draw, whatever the seed of the fit.

    Args:
        resp: as from :func:`label_responsibilities`.
        n_folds: number of folds.
        copies: see :func:`stratified_folds`.
    """
    table = np.asarray(resp)
    codes = np.where(table.any(1), table.argmax(1), -1)
    return stratified_folds(codes, n_folds, np.random.default_rng(_FOLD_SEED), copies)


def stratified_folds(
    codes: Int[np.ndarray, " n"],
    n_folds: int,
    rng: np.random.Generator,
    copies: Int[np.ndarray, " n"] | None = None,
) -> Int[np.ndarray, " n"]:
    """Fold of each item, every class spread evenly over the folds.

    Args:
        codes: label codes, any one number where there is no label.
        n_folds: number of folds.
        rng: NumPy generator.
        copies: index of the first row of each row's group, which stays in one fold; None where each
            row is its own (:func:`nbmodels.fitting.copied_rows.copied_rows`).
    """
    if copies is not None:
        first, group = np.unique(copies, return_inverse=True)
        return stratified_folds(codes[first], n_folds, rng)[group]
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), np.int32)
    fold[order] = np.arange(len(codes)) % n_folds
    return fold


def out_of_fold_log_likelihood(
    emissions: Mapping[str, Component],
    data: Data,
    resp: Float[Array, "n k"],
    fold: Int[Array, " n"] | Int[np.ndarray, " n"],
    *,
    n_folds: int,
    first: int = 0,
    rule: Rule = "map",
) -> Float[Array, "n k"]:
    """Weighted log-likelihood of each item under parameters from the other folds' items.

    Args:
        emissions: components of the features, by name.
        data: encoded data of them.
        resp: responsibilities, such as the given labels; rows of zeros where unknown.
        fold: fold of each item.
        n_folds: number of folds.
        first: the first fold whose items are needed; those of folds before it get zeros.
        rule: how parameters are read.
    """
    own = models.with_parts(data, {name: data.parts[name] for name in emissions})
    return _fold_by_fold(emissions, own, resp, fold, first, n_folds, rule=rule).table


def params_of_all(
    emissions: Mapping[str, Component], data: Data, resp: Float[Array, "n k"], *, rule: Rule = "map"
) -> dict[str, Any]:
    """Parameters from all items: those without a fold that has none."""
    own = models.with_parts(data, {name: data.parts[name] for name in emissions})
    nowhere = np.full(len(resp), -1, np.int32)
    return _fold_by_fold(emissions, own, resp, nowhere, 0, 1, rule=rule).params


class _OutOfFold(NamedTuple):
    """Log-likelihoods of the items, and parameters without the last fold."""

    table: Float[Array, "n k"]
    params: dict[str, Any]


@partial(host_jit, static_argnames="rule")
def _fold_by_fold(
    emissions: Mapping[str, Component],
    data: Data,
    resp: Float[Array, "n k"],
    fold: Int[Array, " n"] | Int[np.ndarray, " n"],
    first: Any,
    n_folds: Any,
    *,
    rule: Rule,
) -> _OutOfFold:
    """Parameters without each fold, and by them the log-likelihoods of its items, if it has any."""

    def without(k: Any) -> dict[str, Any]:
        return models.start(emissions, resp * (fold != k)[:, None], data, rule)

    def add(k: Array, out: _OutOfFold) -> _OutOfFold:
        q, own = without(k), fold == k

        def with_its_items() -> Float[Array, "n k"]:
            read = models.likelihood_params(emissions, q, rule)
            table = models.log_likelihood(emissions, read, data).table
            return jnp.where(own[:, None], table, out.table)

        return _OutOfFold(lax.cond(own.any(), with_its_items, lambda: out.table), q)

    shapes = jax.eval_shape(without, first)
    none = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return lax.fori_loop(first, n_folds, add, _OutOfFold(jnp.zeros_like(resp), none))
