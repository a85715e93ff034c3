"""Fits of several annotators' votes: where they begin, which is kept, and how far votes count."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from inference.arrays import on_device
from inference.compilation import host_jit
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.model import Data, with_parts
from nbmodels.fitting.fit import with_arrays
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.item_effects import shown_dependence
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.vote_dependence import (
    HIDDEN,
    HIDDEN_OF_FEW,
    AnnotatorModel,
    VoteTable,
    assumed_dependence,
    described,
    fitted_to,
    held_out_score,
    tempered_posterior,
    visible_dependence,
)

#: Pooling of annotators whose accuracies votes do not show.
ALIKE = "alike"


def better_held_out(
    pooled: FittedModel, plain: FittedModel, votes: VoteTable
) -> tuple[str, FittedModel]:
    """The pooled fit, unless the plain one predicts held-out votes better, and how it is pooled."""
    if pooled.interrupted:
        return "shared", pooled
    scores = [held_out_score(fitted_to(one.fit, votes), votes) for one in (pooled, plain)]
    return ("shared", pooled) if scores[0] >= scores[1] else ("none", plain)


def without_padding(fitted: FittedModel, name: str) -> FittedModel:
    """Without the rows of a channel of annotators that stand for nobody.

    Args:
        fitted: by padded numbers of annotators, see :meth:`nbmodels.channels.Annotators.padded`.
        name: of the channel.
    """
    fit, data = fitted.fit, fitted.data
    padded: Any = fit.model[name]
    if padded.n_annotators is None:
        return fitted
    density, channel = padded.padding_density(fit.rule), padded.unpadded()
    rows, *sizes = channel.prior.concentration.shape
    q = fit.params[name]
    votes = data.parts[name].first_columns(rows * sizes[0])
    bare = replace(
        fit,
        model={**fit.model, name: channel},
        params={**fit.params, name: replace(q, concentration=q.concentration[:rows])},
        objective=fit.objective - density,
        trace=fit.trace - density,
        restarts=tuple(one - density for one in fit.restarts),
    )
    return replace(fitted, fit=bare, data=with_parts(data, {**data.parts, name: votes}))


def first_estimate(
    candidate: Candidate,
    name: str,
    held: Bool[np.ndarray, " n"],
    rule: Rule,
    given: Float[np.ndarray, " k"] | None,
) -> tuple[Candidate, Any]:
    """Labelling functions with a first estimate of their prior, and parameters to begin from.

    Args:
        candidate: labels by functions, the prior of which is learned.
        name: of their channel.
        held: ``(N,)`` items whose responsibilities stay: those of a known class.
        rule: of the fit.
        given: ``(K,)`` class shares of the estimate; None to learn them.
    """
    model, data, learned = candidate
    shares = None if given is None else on_device(np.asarray(given, float))
    channel, begin = _functions_begin(with_arrays(model), data, on_device(held), shares, name, rule)
    # the weight stays the bare number that it may be, or the next fit would be compiled anew
    channel = replace(channel, weight=model[name].weight)
    return Candidate({**model, name: channel}, data, learned), begin


def tempered(
    fitted: FittedModel,
    votes: VoteTable,
    dependence: float | Literal["auto", "shown"],
    known: Bool[np.ndarray, " n"],
    supported: bool,
    by_group: float,
    as_annotators: bool,
    **about: Any,
) -> FittedModel:
    """With the dependence of the votes, and responsibilities tempered by it.

    Args:
        fitted: model of annotators.
        votes: that it was fitted to.
        dependence: correlation of the votes; ``"shown"`` for what votes show of it, ``"auto"`` with
            what is assumed besides.
        known: ``(N,)`` items of a known class.
        supported: whether each other item is expected to be of a class that one of its votes names.
        by_group: logarithm of the Bayes factor of groups of annotators against independence.
        as_annotators: whether those who may abstain name every class; of functions that name one
            class each items have no effects on labels.
        about: other attributes of the :class:`VoteDependence`.
    """
    model = fitted_to(fitted.fit, votes)
    visible, gain, by_item = _shown(model, votes, as_annotators)
    # nobody who takes votes for independent asks for another posterior than the fit's
    apart = isinstance(dependence, str) and model.few(votes)
    hidden = HIDDEN_OF_FEW if apart else HIDDEN
    learned = {"auto": assumed_dependence(visible, by_item, by_group, hidden), "shown": visible}
    correlation = learned[dependence] if isinstance(dependence, str) else float(dependence)
    resp = np.asarray(fitted.fit.resp)
    if correlation > 0 or apart:
        # from the votes alone: whether they may be guesses matters to the matrices only
        answer = tempered_posterior(model, votes, correlation, apart=apart)
        resp = np.where(known[:, None], resp, answer)
    passed = known if supported else np.ones(len(known), bool)
    here = described(replace(model, resp=resp), votes, correlation, passed, visible, gain)
    here = replace(here, **about)
    return replace(fitted, fit=replace(fitted.fit, resp=resp), vote_dependence=here)


def _shown(
    model: AnnotatorModel, votes: VoteTable, as_annotators: bool
) -> tuple[float, float, float]:
    """The correlation that votes show, its gain in nats, and the log Bayes factor of effects."""
    if model.abstains and not as_annotators:
        return *visible_dependence(model, votes), np.inf
    found = shown_dependence(model.of_votes, votes)
    return found.correlation, found.gain, found.log_factor


@partial(host_jit, static_argnames=("name", "rule"))
def _functions_begin(
    model: Any, data: Data, held: Any, shares: Any, name: str, rule: Rule
) -> tuple[Any, Any]:
    resp = models.initial_responsibilities(model, data)
    assert resp is not None  # of votes
    resp, held = resp * data.weights[:, None], held | (data.weights == 0)
    channel, resp = model[name].first_estimate(resp, held, data.parts[name], shares, rule)
    return channel, models.start({**model, name: channel}, resp, data, rule)
