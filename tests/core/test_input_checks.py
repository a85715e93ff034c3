"""Packing and fitting refuse data that mean nothing, by the argument's name and the row."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from scipy import sparse
from zoo import K

import nbmodels as nb
from inference.pytree import register_dataclass
from nbmodels.channels import (
    Annotators,
    ExternalEvidence,
    FixedTransition,
    SymmetricTransition,
    Transition,
    TrustedLabels,
)
from nbmodels.class_priors import Proportions
from nbmodels.core import model as m
from nbmodels.core.consistency import check_components, check_data
from nbmodels.emissions import Categorical, FullGaussian, Users
from nbmodels.errors import DataError

CHANNELS = [Transition, SymmetricTransition, FixedTransition, TrustedLabels]


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 2, 3], "labels: row 2 has 3; expected a code from 0 to 2"),
        ([0.0, np.nan], "labels: row 1 has nan; expected a whole number"),
        ([0.0, 0.5], "labels: row 1 has 0.5; expected a whole number"),
        ([np.inf], "labels: row 0 has inf; expected a whole number"),
        (["a", "b"], "labels: expected integer codes"),
        ([[0], [1]], r"labels: expected one code an item, \(N,\); got shape \(2, 1\)"),
    ],
)
def test_labels_that_are_no_codes(channel, labels, message):
    with pytest.raises(DataError, match=message):
        channel.pack(np.array(labels), K)


def test_codes_may_be_missing_or_whole_floats():
    for labels in ([0, -1, 2, -7], [0.0, -1.0, 2.0, -7.0]):
        assert Transition.pack(np.array(labels), K).tolist() == [0, K, 2, K]


def test_symbols_that_are_no_codes():
    component = Categorical.of((2, 3), K)
    for codes, message in (
        ([[0, 3]], "codes: row 0 has 3; expected a code from 0"),
        ([[1, 2], [2, 0]], "codes: row 1 has 2"),
        ([[0.0, np.nan]], "codes: row 0 has nan"),
        ([[0, 1, 1]], r"codes: expected \(N, 2\)"),
    ):
        with pytest.raises(DataError, match=message):
            component.pack(np.array(codes))
    assert component.pack(np.array([[1, 2], [-1, -1]])).codes.tolist() == [[1, 2], [-1, -1]]


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_counts_that_are_none(bad):
    votes = np.zeros((3, 2, K))
    votes[1, 0, 0] = bad
    with pytest.raises(DataError, match=r"votes: row 1 has .*; expected a count"):
        Annotators.pack(votes)
    with pytest.raises(DataError, match=r"votes: row 1 has .*; expected a count"):
        Annotators.pack(sparse.csr_array(votes.reshape(3, -1)))
    with pytest.raises(DataError, match=r"edges: row 1 has .*; expected a number"):
        Users.pack(sparse.csr_array(votes[:, 0]))


def test_evidence_that_is_none():
    for bad in (np.nan, np.inf):
        with pytest.raises(DataError, match="log_evidence: row 1 has"):
            ExternalEvidence.pack(np.array([[0.0, 1.0], [0.0, bad]]))
    assert np.isneginf(ExternalEvidence.pack(np.array([[0.0, -np.inf]]))[0, 1])


def broken(case, what):
    """Data that do not belong to the case's model, and the message."""
    parts, weights = case.data.parts, case.data.weights
    one = jnp.ones(len(weights) - 1)
    return {
        "rows": (m.Data(parts, one), "has 12 rows, but there are 11 weights"),
        "missing": (
            m.Data({n: p for n, p in parts.items() if n != "full"}, weights),
            "no part for the component 'full'",
        ),
        "unknown": (
            m.Data({**parts, "other": one}, weights),
            "there is no component 'other'; the model has",
        ),
        "powers": (m.Data(parts, weights, {"full": one}), "the part 'full' has 11 rows"),
        "power": (m.Data(parts, weights, {"other": weights}), "there is no component 'other'"),
        "weights": (m.Data(parts, weights[:, None]), "weights: expected one an item"),
    }[what]


def refused(message, model, data):
    for fitted in (nb.em, jax.jit(nb.em), nb.program, partial(nb.fit, key=jax.random.key(0))):
        with pytest.raises(DataError, match=message):
            fitted(model, data)


@pytest.mark.parametrize("what", ["rows", "missing", "unknown", "powers", "power", "weights"])
def test_data_of_another_model(what):
    case = zoo.build("transition", "full", missing=True)
    check_data(case.model, case.data)
    data, message = broken(case, what)
    refused(message, case.model, data)


def test_fits_refuse_rules_and_numbers_that_mean_nothing():
    case = zoo.build("transition", "full")
    key = jax.random.key(0)
    for call in (partial(nb.fit, key=key), nb.em):
        with pytest.raises(DataError, match=r"^rule: expected 'ml', 'map' or 'vb'; got 'MAP'$"):
            call(case.model, case.data, rule="MAP")
    for weight in (-1.0, np.nan, np.inf):
        weights = np.asarray(case.data.weights).copy()
        weights[3] = weight
        with pytest.raises(DataError, match=f"^weights: row 3 is {weight:g}; weights must be fin"):
            nb.fit(case.model, m.Data(case.data.parts, weights), key=key)
    table = np.array(jax.tree.leaves(case.data.parts["full"])[0], float)
    table[2, 0] = np.nan
    parts = {**case.data.parts, "full": FullGaussian.pack(table)}
    with pytest.raises(DataError, match=r"^data: the part 'full' has NaN in row 2; give what its"):
        nb.fit(case.model, m.Data(parts, case.data.weights), key=key)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({m.PRIOR: None}, "^model: there is no class prior 'class_prior', such as nbmodels.class"),
        ({m.PRIOR: Transition.of(K)}, "^model: there is no class prior 'class_prior'"),
        ({m.PRIOR: Proportions.of(K + 1)}, r"(transition|full)' is of 3 classes, and 'class_p"),
        ({"full": FullGaussian.of(3, K + 1)}, "'full' is of 4 classes, and 'class_prior' of 3"),
        ({"full": FullGaussian.of(2, K)}, "'full' is not one of this FullGaussian; give what Full"),
        ({"full": Users.of(3, K)}, "'full' is not one of this Users; give what Users.pack returns"),
    ],
)
def test_components_that_do_not_fit_together(others, message):
    case = zoo.build("transition", "full", missing=True)
    model = {n: c for n, c in {**case.model, **others}.items() if c is not None}
    parts = {name: case.data.parts[name] for name in model}
    refused(message, model, m.Data(parts, case.data.weights))


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Bare(FullGaussian):
    """Forgets what a log-likelihood is returned as."""

    def log_likelihood(self, likelihood_params, data):
        return super().log_likelihood(likelihood_params, data).table


def test_a_log_likelihood_is_no_bare_table():
    case = zoo.build("transition", "full", missing=True)
    model = {**case.model, "full": Bare(**vars(case.model["full"]))}
    with pytest.raises(DataError, match=r"^model: Bare.log_likelihood of 'full' does not"):
        check_components(model, case.data)


@pytest.mark.parametrize("name", zoo.COMPONENTS)
@pytest.mark.parametrize("missing", [False, True])
def test_data_of_every_component_belong(name, missing):
    case = zoo.build(prior=name) if name in zoo.PRIORS else zoo.build(name, missing=missing)
    check_components(case.model, case.data)
