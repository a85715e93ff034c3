"""The form of the noise matrix on a graph."""

from types import SimpleNamespace

import numpy as np
import pytest

from nbmodels.fitting.graph_forms import Form, preferred_form

ITEMS = 200


def form(noise, diagonal, evidence, right=0.7, identified=True, labelled=ITEMS):
    """A form whose matrix has this diagonal, two classes, and labels of the first."""
    off = 1 - np.array(diagonal)
    transition = np.array([[diagonal[0], off[0]], [off[1], diagonal[1]]])
    labels = np.zeros((len(evidence), 2))
    labels[:labelled, 0] = 1
    fit = SimpleNamespace(
        transitions={"labels": transition},
        resp=np.tile([right, 1 - right], (len(evidence), 1)),
    )
    about = SimpleNamespace(
        resp=labels, weights=np.ones(len(evidence)), identified=lambda fit: identified
    )
    return Form(noise, about, [], None, np.ones(1), fit, np.asarray(evidence, float), None)


def evidence(gain, spread=1.0):
    """Of each label, with a mean that is ``gain`` standard errors of it."""
    noise = np.random.default_rng(0).normal(size=ITEMS)
    noise = spread * (noise - noise.mean()) / noise.std()
    return noise + gain * spread / np.sqrt(ITEMS)


@pytest.mark.parametrize(
    ("diagonal", "gain", "better"),
    [
        ((0.7, 0.7), 0.5, True),
        ((0.7, 0.7), -0.5, False),
        ((0.7, 0.45), 1.5, False),  # most labels of a class are wrong: surely
        ((0.7, 0.45), 2.5, True),
    ],
)
def test_a_form_with_mostly_wrong_labels_of_a_class_must_be_surely_likelier(diagonal, gain, better):
    one = form("symmetric", (0.8, 0.8), np.zeros(ITEMS))
    full = form("full", diagonal, evidence(gain))
    assert (preferred_form([one, full]) is full) == better


@pytest.mark.parametrize("settings", [{"right": 0.4}, {"identified": False}])
def test_nor_are_classes_to_lose_their_names_or_items(settings):
    one = form("symmetric", (0.8, 0.8), np.zeros(ITEMS))
    full = form("full", (0.7, 0.45), evidence(5.0), **settings)
    assert preferred_form([one, full]) is one


def test_forms_are_compared_by_labels_alone():
    """Items without a label have no evidence, but what both halves of the users add to all."""
    one = form("symmetric", (0.8, 0.8), np.zeros(2 * ITEMS), labelled=ITEMS)
    better = np.concatenate([evidence(-1.0), np.ones(ITEMS)])
    full = form("full", (0.7, 0.7), better, labelled=ITEMS)
    assert preferred_form([one, full]) is one
