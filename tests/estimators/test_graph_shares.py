"""Shares of wrong labels, classes and rows without evidence, by an average of neighbour models."""

import warnings

import numpy as np
from graph_worlds import WORLDS, given_labels

from nbmodels import CollaborativeClassifier, IdentifiabilityWarning, Solver
from nbmodels.diagnostics.findings import SHARE_WRONG


def fitted(edges, given, k, **options):
    quiet = Solver(method="vb", progress=False)
    e = CollaborativeClassifier(classes=range(k), random_state=0, solver=quiet, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        return e.fit(edges.T, given)


def test_caution_does_not_lower_the_share_of_wrong_labels():
    rng = np.random.default_rng(0)
    world = WORLDS["weak edges"](rng)
    given = given_labels(rng, world, 0.1, "uniform")
    e = fitted(world.edges, given, 3, noise="symmetric")
    doubt = 1 - e.label_posterior_[np.arange(len(given)), given].mean()
    share = e.fitted_.share_wrong
    rates = 1 - np.diag(e.noise_matrix_)
    assert doubt < 0.9 * share
    assert abs(share - rates @ e.class_prior_) < 0.05
    (finding,) = [one for one in e.verdict().findings if one.name == SHARE_WRONG]
    assert finding.effect == share
    assert f"{100 * share:.1f} %" in finding.sentence
