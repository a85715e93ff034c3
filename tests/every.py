"""Every estimator with data of forty items that it fits quickly."""

import inspect
import warnings
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import nbmodels as nb

N, K = 40, 2
LABELS = np.arange(N) % K
BINARY = (np.random.default_rng(0).random((N, 4)) < 0.1 + 0.8 * LABELS[:, None]).astype(int)
EDGES = pd.DataFrame({"user": np.arange(2 * N) % 7, "item": np.arange(2 * N) // 2})
VOTES = pd.DataFrame({"task": np.arange(N) % 20, "worker": np.arange(N) // 20, "label": LABELS})

#: By estimator: its constructor, and the data of a fit.
CASES = {
    "NoisyBernoulliNB": (nb.NoisyBernoulliNB, (BINARY, LABELS)),
    "NoisyMultinomialNB": (nb.NoisyMultinomialNB, (BINARY, LABELS)),
    "NoisyCategoricalNB": (nb.NoisyCategoricalNB, (BINARY, LABELS)),
    "NoisyGaussianNB": (nb.NoisyGaussianNB, (BINARY, LABELS)),
    "NoisyMixedNB": (nb.NoisyMixedNB, (BINARY, LABELS)),
    "RobustNDA": (nb.RobustNDA, (BINARY, LABELS)),
    "NoisyLabelClassifier": (nb.NoisyLabelClassifier, (BINARY, LABELS)),
    "NoisyLogisticRegression": (nb.NoisyLogisticRegression, (BINARY, LABELS)),
    "NoisyNeighbours": (nb.NoisyNeighbours, (BINARY, LABELS)),
    "AutoNoisyClassifier": (nb.AutoNoisyClassifier, (BINARY, LABELS)),
    "PartialLabelNB": (nb.PartialLabelNB, (BINARY, LABELS)),
    "ClassConditionalNB": (nb.ClassConditionalNB, (BINARY, LABELS)),
    "PositiveUnlabelledNB": (partial(nb.PositiveUnlabelledNB, positive=1), (BINARY, LABELS)),
    "UnlabelledNB": (nb.UnlabelledNB, (BINARY,)),
    "CollaborativeClassifier": (nb.CollaborativeClassifier, (EDGES, LABELS)),
    "DawidSkene": (nb.DawidSkene, (VOTES,)),
    "JointNB": (partial(nb.JointNB, {"x": nb.NoisyBernoulliNB()}), ({"x": BINARY}, LABELS)),
}
every_estimator = pytest.mark.parametrize("name", CASES)

#: Parameters with which a fit takes less than a second, once it is compiled.
_QUICK = {
    "NoisyLabelClassifier": {"base_estimator": GaussianNB(), "rounds": 0},
    "NoisyLogisticRegression": {"rounds": 0},
    "AutoNoisyClassifier": {"emission": ["logistic"]},
    "CollaborativeClassifier": {"alpha": 0.5, "weight": 1.0},
}


def quick(name, **parameters):
    """An estimator with settings that need no selection."""
    make, _ = CASES[name]
    own = _QUICK.get(name, {})
    selects = "training" in inspect.signature(make).parameters and not own
    return (make.published if selects else make)(random_state=0, **own, **parameters)


@cache
def fitted(name):
    """A quick fit; so few data may earn warnings."""
    _, data = CASES[name]
    with warnings.catch_warnings(action="ignore", category=nb.NbmodelsWarning):
        return quick(name).fit(*data)
