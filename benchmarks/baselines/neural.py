"""Two neural baselines with a noise channel, which Zeng et al. 2022 compare with.

``NLNN``: a network whose true labels are latent, fitted by EM (Bekker and Goldberger 2016,
"Training deep neural-networks based on unreliable labels"). ``NAL``: the channel is a last softmax
layer, its weights trained with the network's (Goldberger and Ben-Reuven 2017, "Training deep
neural-networks using a noise adaptation layer", the simple variant). Both have one hidden layer.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

#: How much of the mass of a channel's column is spread, so that no probability is zero.
_SPREAD = 0.01


def _start(key: Array, sizes: tuple[int, ...]) -> list[dict[str, Array]]:
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [
        {"w": jax.random.normal(k, (a, b)) * jnp.sqrt(2 / a), "b": jnp.zeros(b)}
        for k, a, b in shapes
    ]


def _logits(layers: Any, x: Array) -> Array:
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def _soft_loss(params: Any, x: Array, target: Array) -> Array:
    return -jnp.mean(jnp.sum(target * jax.nn.log_softmax(_logits(params["net"], x)), 1))


def _channel_loss(params: Any, x: Array, target: Array) -> Array:
    true = jax.nn.softmax(_logits(params["net"], x))
    seen = true @ jax.nn.softmax(params["channel"])
    return -jnp.mean(jnp.sum(target * jnp.log(seen + 1e-12), 1))


@partial(jax.jit, static_argnames=("loss", "epochs", "batch", "rate"))
def _train(
    params: Any,
    x: Array,
    target: Array,
    key: Array,
    *,
    loss: Any,
    epochs: int,
    batch: int,
    rate: float,
) -> Any:
    """Adam on shuffled batches; rows that do not fill a batch wait for the next epoch."""
    optimiser = optax.adam(rate)
    steps = max(len(x) // batch, 1)
    size = min(batch, len(x))

    def one(state: Any, rows: Array) -> Any:
        params, moments = state
        gradient = jax.grad(loss)(params, x[rows], target[rows])
        change, moments = optimiser.update(gradient, moments, params)
        return (optax.apply_updates(params, change), moments), None

    def epoch(state: Any, key: Array) -> Any:
        rows = jax.random.permutation(key, len(x))[: steps * size].reshape(steps, size)
        return lax.scan(one, state, rows)

    keys = jax.random.split(key, epochs)
    (params, _), _ = lax.scan(epoch, (params, optimiser.init(params)), keys)
    return params


class _Network(ClassifierMixin, BaseEstimator):
    """One hidden layer and a noise channel."""

    def __init__(
        self,
        *,
        hidden: int = 128,
        epochs: int = 20,
        batch: int = 64,
        learning_rate: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.batch = batch
        self.learning_rate = learning_rate
        self.random_state = random_state

    def _prepare(self, X: Any, y: Any) -> tuple[Array, Array, Any, Array]:
        X, y = validate_data(self, X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        x = jnp.asarray(X, jnp.float32)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        first, second = jax.random.split(jax.random.key(seed))
        sizes = (x.shape[1], self.hidden, len(self.classes_))
        return x, jax.nn.one_hot(codes, sizes[-1]), {"net": _start(first, sizes)}, second

    def _trained(self, params: Any, x: Array, target: Array, key: Array, loss: Any) -> Any:
        return _train(
            params,
            x,
            target,
            key,
            loss=loss,
            epochs=self.epochs,
            batch=self.batch,
            rate=self.learning_rate,
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` P(true class | features)."""
        check_is_fitted(self)
        x = jnp.asarray(validate_data(self, X, reset=False), jnp.float32)
        resp = np.asarray(jax.nn.softmax(_logits(self.params_["net"], x)), float)
        return resp / resp.sum(1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """``(N,)`` likeliest true class."""
        return self.classes_[self.predict_proba(X).argmax(1)]


def _confusion(resp: Array, seen: Array) -> Array:
    """``(K, K)`` ``[true, observed]`` from posterior classes, no entry zero."""
    counts = resp.T @ seen
    rows = counts / jnp.maximum(jnp.sum(counts, 1, keepdims=True), 1e-12)
    return (1 - _SPREAD) * rows + _SPREAD / rows.shape[1]


class NLNN(_Network):
    """Noisy-labels neural network: EM over the true labels, the network being part of the M-step.

    Parameters:
        rounds: EM iterations.
        hidden: units of the hidden layer.
        epochs: passes over the data in each M-step.
        batch: rows of a batch.
        learning_rate: of Adam.
        random_state: seed.

    Attributes:
        noise_matrix_: ``(K, K)`` ``[observed, true]``, columns sum to one.
    """

    def __init__(self, *, rounds: int = 5, **shared: Any) -> None:
        super().__init__(**shared)
        self.rounds = rounds

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to ``(N, d)`` features and ``(N,)`` noisy labels."""
        x, seen, params, key = self._prepare(X, y)
        first, *keys = jax.random.split(key, self.rounds + 1)
        params = self._trained(params, x, seen, first, _soft_loss)
        channel = _confusion(jax.nn.softmax(_logits(params["net"], x)), seen)
        for one in keys:
            joint = jax.nn.softmax(_logits(params["net"], x)) * (seen @ channel.T)
            resp = joint / jnp.sum(joint, 1, keepdims=True)
            channel = _confusion(resp, seen)
            params = self._trained(params, x, resp, one, _soft_loss)
        self.params_, self.noise_matrix_ = params, np.asarray(channel.T)
        return self


class NAL(_Network):
    """Noise adaptation layer: the channel is a softmax after the network, trained with it.

    Parameters:
        hidden: units of the hidden layer.
        epochs: passes over the data, before the layer is added and after.
        batch: rows of a batch.
        learning_rate: of Adam.
        random_state: seed.

    Attributes:
        noise_matrix_: ``(K, K)`` ``[observed, true]``, columns sum to one.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to ``(N, d)`` features and ``(N,)`` noisy labels."""
        x, seen, params, key = self._prepare(X, y)
        first, second = jax.random.split(key)
        params = self._trained(params, x, seen, first, _soft_loss)
        found = jax.nn.softmax(_logits(params["net"], x))
        params["channel"] = jnp.log(_confusion(found, seen))
        params = self._trained(params, x, seen, second, _channel_loss)
        self.params_ = params
        self.noise_matrix_ = np.asarray(jax.nn.softmax(params["channel"]).T)
        return self
