"""The result of every fit: one frozen value that all estimators hold and answer from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from inference import Status
from inference.arrays import floating, on_device
from inference.compilation import host_jit
from nbmodels.class_priors import Calibration
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.data.validation import posterior_length
from nbmodels.emissions import Users
from nbmodels.errors import Caution
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.design_effect import DesignEffects, design_effects
from nbmodels.fitting.em import Fit
from nbmodels.fitting.errors_by_size import ErrorRates
from nbmodels.fitting.label_sources import VOTES
from nbmodels.fitting.options import FEW_ROWS
from nbmodels.fitting.plain import plain_classifier
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.vote_dependence import VoteDependence

if TYPE_CHECKING:
    from nbmodels.data.features import Block
    from nbmodels.fitting.matrix_scaling import MatrixScaling
    from nbmodels.fitting.separable import Separable


class Drawn(NamedTuple):
    """What posterior draws are of.

    Attributes:
        fit: the fit.
        data: what was fitted.
        probability: posterior probability of this form of the model.
    """

    fit: Fit
    data: Data
    probability: float = 1.0


class Classifier(Protocol):
    """A classifier of rows that it codes itself."""

    def log_probabilities(self, x: Any, missing: Any = None) -> Float[np.ndarray, "n k"]:
        """Log-probabilities of the classes of new rows.

        Args:
            x: rows, read as the training rows were.
            missing: booleans of cells that are missing, or None.
        """


class Predictor(NamedTuple):
    """A classifier by which new items are predicted in the place of the model's own features.

    Attributes:
        classifier: of the labels as given or as found, or of what is known of the items beside
            their features.
        of_items: ``(N, K)`` log-probabilities of the training items' true classes, each by other
            items' labels.
        calibration: ``(1 + K,)`` log-slope and biases by which the classifier's scores are those of
            true classes.
    """

    classifier: Classifier
    of_items: Float[np.ndarray, "n k"]
    calibration: Float[np.ndarray, " k1"]


class RowClassifier(Protocol):
    """A classifier of rows that it codes itself."""

    def scores(self, block: Block) -> Float[np.ndarray, "n k"]:
        """Log-probabilities of the classes of new rows.

        Args:
            block: checked columns.
        """


@dataclass(frozen=True)
class FittedModel:
    """A fitted model of latent true classes.

    Attributes:
        fit: parameters, responsibilities and trace, without padded rows.
        data: what was fitted, on the host; padded rows have weight 0.
        names: ``(K,)`` names of the classes.
        double: whether the fit computed in double precision.
        scored: emissions whose out-of-fold log-likelihood enters through the calibration of a
            cross-fitted model; empty in a joint one.
        columns: names of the columns of each emission.
        units: by emission, a function from its parameters to the units of the data.
        error_rates: how often labels are wrong by how much is known of their items; None where that
            is taken to be the same.
        mean_sizes: mean size of a training item, by emission whose evidence is scaled by size.
        settings: those under which it was fitted, selected or given.
        chosen: those that were selected, with the self-training rounds.
        choice: data frame of what was compared, or None.
        held_out_scores: ``(N,)`` log-probability of each item's labels by a fit that did not see
            them, NaN where there was none; or None.
        learned_from: ``(N, K)`` responsibilities that the scores were learned from, or None.
        drawn: fit and data that posterior draws are of, where it is not this one.
        alternatives: other forms of the model that may be right, over which posterior draws are
            averaged; where their probabilities sum to one, draws are of these alone.
        ranked: ``(N, K)`` P(true class) of the training items by the plain classifier, where the
            features do not predict held-out labels; see :mod:`nbmodels.fitting.labels_as_given`.
        plain: ``(1 + K,)`` calibration by which new items are predicted, of their scores as they
            come, where it is that of the plain classifier of the given labels or votes; see
            :mod:`nbmodels.fitting.plain`.
        plain_scores: ``(N,)`` log-probability of each item's labels under the plain classifier, by
            a fit that did not see them, or None.
        scaling: matrix scaling of a classifier's scores, which those of new items meet, too
            (:mod:`nbmodels.fitting.matrix_scaling`); None where a temperature is all.
        predictor: nonlinear classifier by which new items are predicted, where it predicts labels
            surely better than the model's own features do; or None.
        regression: what new items have their scores of, where these are not of the emissions; else
            None.
        separable: the model of the same labels whose classes are functions of the features
            (:mod:`nbmodels.fitting.separable`), or None.
        copies: ``(N,)`` first row of each row's group, as given or of near copies, which were kept
            in one fold and are no neighbours (:mod:`nbmodels.fitting.copied_rows`); None where each
            row is its own.
        reference: ``(N,)`` class that the features point to by a plain classifier of other items'
            labels (:mod:`nbmodels.fitting.reference`), -1 where there is none; or None.
        reference_held_out: ``(N,)`` log-probability of each given label by that classifier, which
            did not see it, NaN where there is none; or None.
        reference_corrected: ``(N,)`` true class by the same classifier, corrected for errors with a
            direction (:mod:`nbmodels.fitting.changed_labels`), -1 where there is none; or None.
        noisy: probability that the labels are noisy at all; by the rest, given labels are right.
        averaged: ``(N, K)`` P(true class) averaged over the level of the noise
            (:mod:`nbmodels.fitting.noise_levels`), where few labels hardly tell it; or None.
        counterpart: the joint fit beside a cross-fitted one, or the reverse, where both were made;
            see :mod:`nbmodels.fitting.feedback`.
        candidate: features and labels of a cross-fitted model that could be fitted jointly, where
            that was not done and the table is small.
        collapsed: whether responsibilities are those of collapsed updates on a graph.
        coded: blocks of columns with their fitted encoders, for new items.
        vote_dependence: how far votes on an item depend on each other given its class, by which
            responsibilities are tempered; None without votes, or where they are one source of
            several.
        n_fits: number of fits by EM or CAVI that were made for it: candidates, folds and restarts,
            each of them once; 0 where they were not counted.
        interrupted: whether Ctrl-C ended the fit or the selection of its settings.
        cautions: warnings to be issued.

    Examples:
        Of 200 ants and bees, of which a fifth has the other label:

        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> animals = rng.integers(2, size=200)
        >>> lengths = 2.0 * animals[:, None] + rng.normal(size=(200, 3))
        >>> y = np.array(["ant", "bee"])[corrupt(animals, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyGaussianNB(random_state=0).fit(lengths, y)
        >>> fitted = model.fitted_
        >>> print(fitted.converged, fitted.chosen)
        True {'training': 'joint'}
        >>> print(fitted.noise_matrix.round(1))  # P(observed | true)
        [[0.8 0.2]
         [0.2 0.8]]
    """

    fit: Fit
    data: Data
    names: np.ndarray
    double: bool
    scored: tuple[str, ...] = ()
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    units: Mapping[str, Any] = field(default_factory=dict)
    error_rates: ErrorRates | None = None
    mean_sizes: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    chosen: Mapping[str, Any] = field(default_factory=dict)
    choice: pd.DataFrame | None = None
    held_out_scores: Float[np.ndarray, " n"] | None = None
    learned_from: Float[np.ndarray, "n k"] | None = None
    drawn: tuple[Fit, Data] | None = None
    alternatives: tuple[Drawn, ...] = ()
    ranked: Float[np.ndarray, "n k"] | None = None
    plain: Float[np.ndarray, " k1"] | None = None
    plain_scores: Float[np.ndarray, " n"] | None = None
    scaling: MatrixScaling | None = None
    predictor: Predictor | None = None
    regression: RowClassifier | None = None
    separable: Separable | None = None
    copies: Int[np.ndarray, " n"] | None = None
    reference: Int[np.ndarray, " n"] | None = None
    reference_held_out: Float[np.ndarray, " n"] | None = None
    reference_corrected: Int[np.ndarray, " n"] | None = None
    noisy: float = 1.0
    averaged: Float[np.ndarray, "n k"] | None = None
    counterpart: FittedModel | None = None
    candidate: Candidate | None = None
    collapsed: bool = False
    coded: tuple[Any, ...] = ()
    vote_dependence: VoteDependence | None = None
    n_fits: int = 0
    interrupted: bool = False
    cautions: tuple[Caution, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the iteration converged and nothing was interrupted."""
        return self.fit.status.ok and not self.interrupted

    @property
    def informative(self) -> bool:
        """Whether the features count for the training items: they predict held-out labels.

        Where they do not, classes are those of the votes and, where there are none, of the labels.
        """
        return self.drawn is None and (self.plain is None or VOTES not in self.data.parts)

    @property
    def as_given(self) -> bool:
        """Whether only the prior is known of the noise, since the features do not predict labels.

        Posterior draws are of another fit in a joint model of a graph, too, whose users count.
        """
        users = (c for c in self.fit.model.values() if isinstance(c, Users))
        return self.drawn is not None and not any(np.any(c.weight) for c in users)

    @property
    def label_posterior(self) -> Float[np.ndarray, "n k"]:
        """P(true class | everything known) of the training items.

        Averaged over whether the labels are noisy at all, by ``noisy``, and where few labels
        hardly tell it, over how noisy they are.
        """
        if self.averaged is not None:
            return self._beside_given(self.averaged, self._believed)
        resp = np.array(self.fit.resp if self.ranked is None else self.ranked, float)
        resp /= resp.sum(1, keepdims=True)
        return self._beside_given(resp, self.noisy)

    @property
    def _believed(self) -> float:
        """How far an average over levels of the noise, low ones included, is believed.

        Few rows bring it about by chance: of them the probability of noise counts as it is. Of more
        it counts where no noise is likelier.
        """
        few = len(self.fit.resp) <= FEW_ROWS
        return self.noisy if few or self.noisy < 0.5 else 1.0

    def _beside_given(
        self, resp: Float[np.ndarray, "n k"], share: float
    ) -> Float[np.ndarray, "n k"]:
        """Averaged with the given labels, which are right by the rest of the probability."""
        if share == 1:
            return resp
        n, k = resp.shape
        codes = np.asarray(self.data.parts["labels"])[:n]
        free = (codes < k) & ~checked_rows(self.fit.model, self.data, n)
        weight = np.where(free, share, 1.0)
        out = weight[:, None] * resp
        out[np.arange(n), np.minimum(codes, k - 1)] += 1 - weight
        return out

    @property
    def share_wrong(self) -> float | None:
        """Expected share of the given labels that is wrong; None where it is that of the posterior.

        A posterior under which labels are changed with caution takes more of them for right.
        """
        return None

    @property
    def class_shares(self) -> Float[np.ndarray, " k"]:
        """Shares of the true classes; among the training items where items have their own prior."""
        if self.data.parts.get(PRIOR) is not None:
            resp = self.label_posterior
            return np.average(resp, 0, self.data.weights[: len(resp)])
        with computing(self.double):
            probs = np.exp(np.asarray(self.fit.point_of(PRIOR), float))
        return probs / probs.sum()

    @property
    def noise_matrices(self) -> dict[str, Float[np.ndarray, "observed k"]]:
        """``[observed, true]`` P(observed | true) of each channel of noisy labels, by its name.

        For several annotators, that of one taken at random.
        """
        with computing(self.double):
            found = self.fit.transitions
        tables = {name: np.asarray(t, float) for name, t in found.items()}
        return {name: (t / t.sum(1, keepdims=True)).T for name, t in tables.items()}

    @property
    def noise_matrix(self) -> Float[np.ndarray, "observed k"] | None:
        """That of the given labels, or of the features' votes; None where there is neither."""
        found = self.noise_matrices
        return found.get("labels", found.get(VOTES))

    @property
    def posterior_targets(self) -> tuple[Drawn, ...]:
        """What posterior draws are of, with few of the padded rows, this model first.

        A fit shares its program with others of its padded size; a draw would pay for every row.
        """
        fit, data = self.drawn or (without(self.fit, self.scored), self.data)
        own = Drawn(fit, data, 1 - sum(other.probability for other in self.alternatives))
        length = posterior_length(len(self.fit.resp))
        return tuple(
            one._replace(data=models.first_rows(one.data, length))
            for one in (own, *self.alternatives)
            if one.probability > 0
        )

    @property
    def design_effects(self) -> DesignEffects | None:
        """How much more estimates vary than if rows were independent; None where they are."""
        if self.copies is None or self.drawn is not None or "labels" not in self.data.parts:
            return None  # draws of the prior count no row
        n = len(self.copies)
        codes = np.asarray(self.data.parts["labels"])[:n]
        weights = np.asarray(self.data.weights, float)[:n]
        return design_effects(self.copies, codes, self.label_posterior, weights)

    @cached_property
    def calibration(self) -> Float[np.ndarray, " k1"]:
        """``(1 + K,)`` log-slope and biases by which scores of new items are calibrated.

        Logarithmic opinion pool of two calibrations (Genest and Zidek 1986): of the noise model's,
        and of one to the given labels as they are, by the probability of each. Where labels are
        likelier right than noisy, new items are not predicted as if they were noisy; and a linear
        classifier stays one (``benchmarks/records/trainings.md``).
        """
        if self.plain is not None:
            return self.plain
        own = self._class_prior.of_scores(self.fit.params[PRIOR].mean)
        scores = self.data.parts.get(PRIOR)
        if self.noisy == 1 or scores is None:
            return own
        codes = given_codes(self)
        n, k = len(codes), len(self.names)
        given = np.where(codes[:, None] == np.arange(k), 1.0, 0.0)
        weights, one_fold = np.asarray(self.data.weights, float)[:n], np.zeros(n, int)
        about = np.asarray(scores, float)[:n], given, weights, one_fold
        as_given = plain_classifier(*about, bool(self.scored)).calibration
        (own_slope, *biases), (slope, *others) = own, as_given
        slope = self.noisy * np.exp(own_slope) + (1 - self.noisy) * np.exp(slope)
        bias = self.noisy * np.array(biases) + (1 - self.noisy) * np.array(others)
        return np.concatenate([[np.log(slope)], bias])

    @property
    def _class_prior(self) -> Any:
        return self.fit.model[PRIOR]

    @property
    def _predicting(self) -> dict[str, Any]:
        """Parameters that new items meet."""
        params = dict(self.fit.params)
        scored = self.noisy < 1 and self.data.parts.get(PRIOR) is not None
        if scored or self.plain is not None:
            own, prior = params[PRIOR], self._class_prior
            mean = prior.from_scores(self.calibration)
            params[PRIOR] = replace(own, mean=mean.astype(own.mean.dtype))
        return params

    def predict(self, data: Data) -> Float[np.ndarray, "n k"]:
        """P(true class | features, and whatever else is known) of new items; rows sum to one.

        Args:
            data: encoded data of the new items, padded rows included; with scores of another
                classifier as those of the class prior, or without for those of the emissions.
        """
        scored = self.scored if data.parts.get(PRIOR) is None else ()
        with computing(self.double):
            # one program for all channels of labels, of which new items have none
            read = {PRIOR, *scored, *data.parts}
            model, params = (
                {name: part for name, part in parts.items() if name in read}
                for parts in (self.fit.model, self._predicting)
            )
            model = jax.tree.map(on_device, model)
            out = _posterior(model, params, data, scored, self.fit.rule)
            resp = np.asarray(out, float)
        return resp / resp.sum(1, keepdims=True)


@partial(host_jit, static_argnames=("scored", "rule"))
def _posterior(model: Model, params: Any, data: Data, scored: tuple[str, ...], rule: Rule) -> Any:
    read = models.likelihood_params(model, params, rule)
    if scored:
        emissions = {name: model[name] for name in scored}
        scores = models.log_likelihood(emissions, read, data).table
        others = {name: part for name, part in data.parts.items() if name not in scored}
        data = Data({**others, PRIOR: Calibration.centred(scores)}, data.weights)
    return models.posterior(model, read, data).resp


def given_codes(fitted: FittedModel, channel: str = "labels") -> Int[np.ndarray, " n"]:
    """``(N,)`` given labels of the rows that count, -1 where there is none.

    Args:
        fitted: a model with labels of one class an item.
        channel: name of the labels' channel; that of checked labels is another one.
    """
    n, k = len(fitted.fit.resp), len(fitted.names)
    codes = np.asarray(fitted.data.parts[channel])[:n]
    return np.where((codes < k) & (np.asarray(fitted.data.weights)[:n] > 0), codes, -1)


def without(fitted: Fit, components: tuple[str, ...]) -> Fit:
    """The fit of the other components, such as draws are of."""
    if not components:
        return fitted
    return replace(
        fitted,
        model={name: c for name, c in fitted.model.items() if name not in components},
        params={name: q for name, q in fitted.params.items() if name not in components},
    )


def fitted_model(
    fit: Fit,
    data: Data,
    names: np.ndarray,
    n_rows: int,
    *,
    log_jacobian: Any = 0.0,
    interrupted: bool = False,
    cautions: tuple[Caution, ...] = (),
    **more: Any,
) -> FittedModel:
    """A fit as a :class:`FittedModel`: without padding, in the units of the data.

    Called where the fit's precision holds.

    Args:
        fit: of encoded, perhaps padded data.
        data: that data.
        names: ``(K,)`` names of the classes.
        n_rows: number of rows before padding.
        log_jacobian: ``(n_rows,)`` what the features' coding adds to an item's log-density.
        interrupted: whether Ctrl-C ended the selection of settings.
        cautions: warnings beside those of the fit itself.
        more: other attributes.
    """
    jacobian = np.broadcast_to(np.asarray(log_jacobian, float), (n_rows,))
    shift = float(np.sum(np.asarray(data.weights)[:n_rows] * jacobian))
    plain = replace(
        fit,
        resp=fit.resp[:n_rows],
        log_likelihood=fit.log_likelihood[:n_rows] + jacobian,
        objective=fit.objective + shift,
        trace=fit.trace + shift,
        restarts=tuple(r + shift for r in fit.restarts),
    )
    return FittedModel(
        plain,
        jax.tree.map(np.asarray, data),
        names,
        floating() == jnp.float64,
        interrupted=interrupted or fit.status == Status.INTERRUPTED,
        cautions=(*cautions, *fit.cautions(names)),
        **more,
    )
