"""What may help against a failed check, in the estimators' parameters: the one place they stand."""

from __future__ import annotations

from collections.abc import Collection

CROSS_FIT = 'training="cross_fit"'
SMALLER_WEIGHT = "training=Joint(weight=...) with a smaller weight"
FULL_COVARIANCE = 'covariance="full"'
SYMMETRIC_NOISE = 'noise="symmetric"'
FULL_NOISE = 'noise="full"'
NO_RESTARTS = "solver without restarts"
STUDENT = "RobustNDA"
OTHER_EMISSION = "another emission"
TRANSFORMED_COLUMN = "logarithms or ranks of that column"
PRESENCE = "presence in the place of counts"
SPLIT_CLASS = "a class split in two"
AUDIT = "an audit of some rows (audit_plan), whose labels then serve as trusted="
NEIGHBOURS = "NoisyNeighbours"
DEPENDENCE = 'dependence="auto"'
OWN_POOLING = 'pooling="own"'
AUTO_POOLING = 'pooling="auto"'
MORE_VOTES = "second votes on some tasks"
EVEN_VOTES = "as many votes on every task"
TRUSTED = "some verified labels (trusted=)"
AUTO = "AutoNoisyClassifier"
LEARNED_SHARES = "class shares that are learned, and not given"
OPEN_GRAPH = "CollaborativeClassifier() with alpha, weight and training left open"

#: Parameter that a remedy sets. The others are for every estimator.
_SETS = {
    CROSS_FIT: "training",
    SMALLER_WEIGHT: "training__weight",
    FULL_COVARIANCE: "covariance",
    SYMMETRIC_NOISE: "noise",
    FULL_NOISE: "noise",
    NO_RESTARTS: "solver",
    DEPENDENCE: "dependence",
    OWN_POOLING: "pooling",
    AUTO_POOLING: "pooling",
}


def open_to(
    remedies: Collection[str], estimator: str, parameters: Collection[str]
) -> tuple[str, ...]:
    """The remedies that an estimator can take.

    Args:
        remedies: some of the above, or others, which are for every estimator.
        estimator: its name, which is no remedy for itself.
        parameters: names of what can be set; ``"training__weight"`` where features have a weight.
    """
    return tuple(
        one
        for one in remedies
        if one != estimator and (one not in _SETS or _SETS[one] in parameters)
    )
