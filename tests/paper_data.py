"""Small data sets in the papers' letters, for the papers' tests."""

import itertools

import numpy as np

# Denis et al. 2006

#: Numbers of values of the attributes.
SIZES = (2, 3, 4)


def product_distributions(sizes, n_classes, rng, least=0.05):
    """``(S, K)`` probabilities of the attributes' values, none below ``least``."""
    room = [1 - least * size for size in sizes]
    parts = [
        least + r * rng.dirichlet(np.ones(s), n_classes).T for s, r in zip(sizes, room, strict=True)
    ]
    return np.concatenate(parts)


def all_items(sizes):
    """Every value of ``x``, and its indicators side by side."""
    x = np.array(list(itertools.product(*map(range, sizes))))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    onehot = np.zeros((len(x), sum(sizes)))
    np.put_along_axis(onehot, x + starts, 1, 1)
    return x, onehot


def joint(onehot, shares, probs):
    """``(items, K)`` P(x, y)."""
    return np.exp(onehot @ np.log(probs)) * shares


def two_class_items(n=60, seed=0, sizes=SIZES):
    """Attributes, labels that are wrong at rates of their class's own, and the true classes."""
    rng = np.random.default_rng(seed)
    probs = product_distributions(sizes, 2, rng)
    y_true = rng.integers(2, size=n)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    x = np.stack(
        [
            [
                rng.choice(size, p=probs[a : a + size, k] / probs[a : a + size, k].sum())
                for k in y_true
            ]
            for a, size in zip(starts, sizes, strict=False)
        ],
        1,
    )
    y = np.where(rng.random(n) < np.where(y_true, 0.4, 0.1), 1 - y_true, y_true)
    return x, y, y_true


# Chen et al. 2019

#: Classes, words, and the length of a document.
N_TOPICS, N_WORDS, LENGTH = 4, 6, 30


def partly_labelled_documents(n=20, seed=0):
    """Documents, ``y``, ``z`` and true classes: a third of S1, the rest S2, one to three excluded.

    The last document has all classes but its own excluded, without a positive label.
    """
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(N_WORDS), N_TOPICS)
    true = np.arange(n) % N_TOPICS
    x = np.stack([rng.multinomial(LENGTH, theta[i]) for i in true]).astype(float)
    y, z = np.zeros((n, N_TOPICS)), np.zeros((n, N_TOPICS))
    for d, i in enumerate(true):
        if d % 3 == 0:
            y[d, i] = 1
        else:
            others = np.setdiff1d(np.arange(N_TOPICS), i)
            z[d, rng.choice(others, N_TOPICS - 1 if d == n - 1 else 1 + d % 2, replace=False)] = 1
    return x, y, z, true


# Zeng et al. 2022

#: The page's programs, and numbers of classes and of features of either kind.
KINDS = ("binary", "continuous", "mixed")
N_CLASSES, N_BINARY, N_REAL = 3, 5, 2


def features(kind, rng, n=24):
    """Features by the page's names, of items in classes 0, 1, 2, 0, ..., and their labels."""
    k = N_CLASSES
    y = np.arange(n) % k
    out = {}
    if kind != "continuous":
        chances = 0.25 + 0.5 * rng.random((k, N_BINARY))[y]
        out["X"] = (rng.random((n, N_BINARY)) < chances).astype(float)
    if kind != "binary":
        out["Z"] = rng.normal(size=(n, N_REAL)) + rng.normal(size=(k, N_REAL))[y]
    labels = np.where(rng.random(n) < 0.75, y, rng.integers(k, size=n))
    labels[3::7] = -1
    return out, labels
