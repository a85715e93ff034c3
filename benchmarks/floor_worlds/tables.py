"""Worlds of real and binary features, and of documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import t

from floor_worlds.base import N_NEW, Items, Setting, classes, world

#: Columns of tables, words of documents.
_COLUMNS, _WORDS = 8, 300

#: Degrees of freedom of heavy tails.
_DOF = 1.2

#: Few sizes, each with several kinds of errors: programs are compiled for a size.
_TINY = (Setting(60, 2), Setting(60, 2, errors="features"))
_SMALL = (Setting(100, 3), Setting(100, 3, errors="pair"), Setting(100, 3, share=0.4))
_CLEAR = Setting(600, 3)
_RARE, _MEDIUM = Setting(600, 3, True, share=0.1), Setting(600, 3, errors="features")


def _split(x: Any, y: np.ndarray, y_new: np.ndarray, evidence: np.ndarray) -> Items:
    """Training rows first, then new ones."""
    n = len(y)
    return Items(x[:n], y, x[n:], y_new, evidence[:n])


def _gaussian(
    setting: Setting, rng: np.random.Generator, spread: float, correlation: float
) -> Items:
    y, y_new = (classes(n, setting, rng) for n in (setting.n, N_NEW))
    means = rng.normal(0, spread, (setting.k, _COLUMNS))
    covariance = correlation + (1 - correlation) * np.eye(_COLUMNS)
    root = np.linalg.cholesky(covariance)
    both = np.concatenate([y, y_new])
    x = means[both] + rng.normal(size=(len(both), _COLUMNS)) @ root.T
    gaps = np.linalg.solve(root, (x[:, None] - means).reshape(-1, _COLUMNS).T)
    return _split(x, y, y_new, -0.5 * (gaps**2).sum(0).reshape(len(both), -1))


@world("Gaussian", "reals", quick=(*_TINY, *_SMALL[:2], _RARE, _MEDIUM))
def gaussian(setting: Setting, rng: np.random.Generator) -> Items:
    """Independent columns, classes well apart."""
    return _gaussian(setting, rng, 0.8, 0.0)


@world("Gaussian, overlapping", "reals", quick=(_TINY[0], _SMALL[0]))
def overlapping(setting: Setting, rng: np.random.Generator) -> Items:
    """Independent columns, classes that overlap."""
    return _gaussian(setting, rng, 0.5, 0.0)


@world("correlated", "reals", quick=(_TINY[0], _SMALL[0], _SMALL[2], _MEDIUM))
def correlated(setting: Setting, rng: np.random.Generator) -> Items:
    """Correlated columns, which naive Bayes takes for independent."""
    return _gaussian(setting, rng, 0.8, 0.6)


@world("heavy tails", "reals", quick=(_CLEAR,))
def heavy_tails(setting: Setting, rng: np.random.Generator) -> Items:
    """Student's t with 1.2 degrees of freedom, which has a mean and no variance."""
    y, y_new = (classes(n, setting, rng) for n in (setting.n, N_NEW))
    means = rng.normal(0, 2, (setting.k, _COLUMNS))
    both = np.concatenate([y, y_new])
    x = means[both] + rng.standard_t(_DOF, (len(both), _COLUMNS))
    return _split(x, y, y_new, t.logpdf(x[:, None] - means, _DOF).sum(2))


@world("gross errors", "reals", quick=(_CLEAR,))
def gross_errors(setting: Setting, rng: np.random.Generator) -> Items:
    """One cell in twenty is a hundred times too large: a decimal point is missing."""
    found = _gaussian(setting, rng, 1.0, 0.0)
    x, x_new = (
        np.where(rng.random(part.shape) < 0.05, 100 * part, part) for part in (found.x, found.x_new)
    )
    return replace(found, x=x, x_new=x_new)


@world("rings", "reals", quick=(_CLEAR,))
def rings(setting: Setting, rng: np.random.Generator) -> Items:
    """Rings about one centre, beside two columns of chance."""
    y, y_new = (classes(n, setting, rng) for n in (setting.n, N_NEW))
    both = np.concatenate([y, y_new])
    angle = rng.uniform(0, 2 * np.pi, len(both))
    radius = 1 + both + 0.25 * rng.normal(size=len(both))
    plane = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    gaps = (radius[:, None] - 1 - np.arange(setting.k)) / 0.25
    x = np.hstack([plane, rng.normal(size=(len(both), 2))])
    return _split(x, y, y_new, -0.5 * gaps**2)


def _binary(setting: Setting, rng: np.random.Generator, columns: int, copies: int) -> Items:
    y, y_new = (classes(n, setting, rng) for n in (setting.n, N_NEW))
    both = np.concatenate([y, y_new])
    probs = rng.uniform(0.1, 0.7, (setting.k, columns))
    x = (rng.random((len(both), columns)) < probs[both]).astype(float)
    evidence = x @ np.log(probs).T + (1 - x) @ np.log1p(-probs).T
    again = (rng.random((copies, *x.shape)) < 0.05) ^ (x > 0)
    return _split(np.hstack([x, *again[1:]]).astype(float), y, y_new, evidence)


@world("binary", "binary", quick=(_RARE, _MEDIUM))
def binary(setting: Setting, rng: np.random.Generator) -> Items:
    """Independent binary columns."""
    return _binary(setting, rng, 20, 1)


@world("binary, copies", "binary", quick=(_MEDIUM,))
def copies(setting: Setting, rng: np.random.Generator) -> Items:
    """Ten binary columns, each there twice with a few cells changed."""
    return _binary(setting, rng, 10, 2)


def _documents(setting: Setting, rng: np.random.Generator, length: float, tilt: float) -> Items:
    y, y_new = (classes(n, setting, rng) for n in (setting.n, N_NEW))
    both = np.concatenate([y, y_new])
    frequent = 1 / np.arange(1, _WORDS + 1)
    probs = frequent * np.exp(rng.normal(0, tilt, (setting.k, _WORDS)))
    probs /= probs.sum(1, keepdims=True)
    # lengths vary by half and more, as those of texts do
    words = 1 + rng.poisson(rng.gamma(4, length / 4, len(both)))
    x = rng.multinomial(words, probs[both]).astype(float)
    return _split(sparse.csr_matrix(x), y, y_new, x @ np.log(probs).T)


@world("texts, short", "counts", quick=(_RARE, _MEDIUM))
def short(setting: Setting, rng: np.random.Generator) -> Items:
    """Documents of a dozen words."""
    return _documents(setting, rng, 12.0, 1.0)


@world("texts, long", "counts")
def long(setting: Setting, rng: np.random.Generator) -> Items:
    """Documents of some 150 words."""
    return _documents(setting, rng, 150.0, 0.5)
