"""Two neural baselines with a noise channel, which Zeng et al. 2022 compare with.

``NLNN``: a network whose true labels are latent, fitted by EM (Bekker and Goldberger 2016,
"Training deep neural-networks based on unreliable labels"). ``NAL``: the channel is a last softmax
layer, its weights trained with the network's (Goldberger and Ben-Reuven 2017, "Training deep
neural-networks using a noise adaptation layer", the simple variant). The default network and its
training are those of the latter's published code, https://github.com/udibr/noisy_labels.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Self

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


class Training(NamedTuple):
    """How long and how fast a network is trained: traced, so that one program does for all."""

    epochs: int
    patience: int
    rate: float


class Split(NamedTuple):
    """Rows for training and for early stopping, the labels as targets."""

    x: Array
    target: Array
    x_held: Array
    held: Array


def _start(key: Array, sizes: tuple[int, ...]) -> list[dict[str, Array]]:
    """Weights uniform as in Glorot and Bengio 2010, biases zero."""
    keys = jax.random.split(key, len(sizes) - 1)
    uniform = jax.nn.initializers.glorot_uniform()
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [{"w": uniform(k, (a, b)), "b": jnp.zeros(b)} for k, a, b in shapes]


def _logits(layers: Any, x: Array, key: Array | None = None, dropout: float = 0.0) -> Array:
    """Outputs of the last layer; units are dropped where a key is given."""
    keys = [None] * len(layers) if key is None else jax.random.split(key, len(layers))
    for layer, one in zip(layers[:-1], keys, strict=False):
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
        if one is not None and dropout:
            x = jnp.where(jax.random.bernoulli(one, 1 - dropout, x.shape), x / (1 - dropout), 0)
    return x @ layers[-1]["w"] + layers[-1]["b"]


def _soft_loss(params: Any, x: Array, target: Array, **drop: Any) -> Array:
    """``(rows,)`` cross-entropy of the network's own output."""
    return -jnp.sum(target * jax.nn.log_softmax(_logits(params["net"], x, **drop)), 1)


def _channel_loss(params: Any, x: Array, target: Array, **drop: Any) -> Array:
    """``(rows,)`` cross-entropy behind the channel."""
    true = jax.nn.softmax(_logits(params["net"], x, **drop))
    seen = true @ jax.nn.softmax(params["channel"])
    return -jnp.sum(target * jnp.log(seen + 1e-12), 1)


@partial(jax.jit, static_argnames=("loss", "dropout", "batch"))
def _train(
    params: Any, data: Split, key: Array, how: Training, *, loss: Any, dropout: float, batch: int
) -> Any:
    """Adam on shuffled batches, until the loss of the held rows has not fallen for a while.

    The last weights are returned, as by the published code.
    """
    optimiser = optax.adam(how.rate)
    n = len(data.x)
    steps = -(-n // batch)
    empty = steps * batch - n

    def one(state: Any, drawn: tuple[Array, Array, Array]) -> Any:
        params, moments = state
        rows, weights, key = drawn

        def mean(params: Any) -> Array:
            losses = loss(params, data.x[rows], data.target[rows], key=key, dropout=dropout)
            return jnp.sum(weights * losses) / jnp.sum(weights)

        change, moments = optimiser.update(jax.grad(mean)(params), moments, params)
        return (optax.apply_updates(params, change), moments), None

    def epoch(state: Any) -> Any:
        i, waited, best, inner = state
        order, drops = jax.random.split(jax.random.fold_in(key, i))
        rows = jnp.append(jax.random.permutation(order, n), jnp.zeros(empty, int))
        weights = jnp.append(jnp.ones(n), jnp.zeros(empty))
        shape = (steps, batch)
        batches = rows.reshape(shape), weights.reshape(shape), jax.random.split(drops, steps)
        inner, _ = lax.scan(one, inner, batches)
        found = jnp.mean(loss(inner[0], data.x_held, data.held))
        return i + 1, jnp.where(found < best, 0, waited + 1), jnp.minimum(found, best), inner

    def goes_on(state: Any) -> Array:
        return (state[0] < how.epochs) & (state[1] <= how.patience)

    first = (0, jnp.zeros((), int), jnp.asarray(jnp.inf), (params, optimiser.init(params)))
    return lax.while_loop(goes_on, epoch, first)[3][0]


class _Network(ClassifierMixin, BaseEstimator):
    """Hidden layers of rectified units and a noise channel."""

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (500, 300),
        dropout: float = 0.5,
        epochs: int = 40,
        patience: int = 4,
        batch: int = 256,
        learning_rate: float = 1e-3,
        validation: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.patience = patience
        self.batch = batch
        self.learning_rate = learning_rate
        self.validation = validation
        self.random_state = random_state

    def _prepare(self, X: Any, y: Any) -> tuple[Array, Array, Any, Array]:
        X, y = validate_data(self, X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        x = jnp.asarray(X, jnp.float32)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        first, second, third = jax.random.split(jax.random.key(seed), 3)
        sizes = (x.shape[1], *self.hidden, len(self.classes_))
        order = np.asarray(jax.random.permutation(third, len(x)))
        cut = max(1, round(self.validation * len(x)))
        self.held_, self.used_ = order[:cut], order[cut:]
        return x, jax.nn.one_hot(codes, sizes[-1]), {"net": _start(first, sizes)}, second

    def _trained(self, params: Any, x: Array, target: Array, key: Array, loss: Any) -> Any:
        how = Training(self.epochs, self.patience, self.learning_rate)
        used, held = self.used_, self.held_
        data = Split(x[used], target[used], x[held], target[held])
        static = {"loss": loss, "dropout": self.dropout, "batch": self.batch}
        return _train(params, data, key, how, **static)

    def predict_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` P(true class | features)."""
        check_is_fitted(self)
        x = jnp.asarray(validate_data(self, X, reset=False), jnp.float32)
        resp = np.asarray(jax.nn.softmax(_logits(self.params_["net"], x)), float)
        return resp / resp.sum(1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """``(N,)`` likeliest true class."""
        return self.classes_[self.predict_proba(X).argmax(1)]

    def noisy_loss(self, X: Any, y: Any) -> float:
        """Mean negative log-probability of given labels, through the channel."""
        codes = np.searchsorted(self.classes_, y)
        seen = self.predict_proba(X) @ self.noise_matrix_.T
        return float(-np.log(np.maximum(seen[np.arange(len(codes)), codes], 1e-12)).mean())


def _confusion(resp: Array, seen: Array) -> Array:
    """``(K, K)`` ``[true, observed]`` from posterior classes, no entry zero."""
    counts = resp.T @ seen
    rows = counts / jnp.maximum(jnp.sum(counts, 1, keepdims=True), 1e-12)
    return (1 - _SPREAD) * rows + _SPREAD / rows.shape[1]


class NLNN(_Network):
    """Noisy-labels neural network: EM over the true labels, the network being part of the M-step.

    Parameters:
        rounds: EM iterations.
        hidden: units of the hidden layers.
        dropout: share of the hidden units that a step leaves out.
        epochs: most passes over the data in each M-step.
        patience: passes without a smaller loss of the held rows before a stop.
        batch: rows of a batch.
        learning_rate: of Adam.
        validation: share of the rows, with their noisy labels, held out for early stopping.
        random_state: seed.

    Attributes:
        noise_matrix_: ``(K, K)`` ``[observed, true]``, columns sum to one.
    """

    def __init__(
        self,
        *,
        rounds: int = 5,
        hidden: tuple[int, ...] = (500, 300),
        dropout: float = 0.5,
        epochs: int = 40,
        patience: int = 4,
        batch: int = 256,
        learning_rate: float = 1e-3,
        validation: float = 0.1,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            hidden=hidden,
            dropout=dropout,
            epochs=epochs,
            patience=patience,
            batch=batch,
            learning_rate=learning_rate,
            validation=validation,
            random_state=random_state,
        )
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
        hidden: units of the hidden layers.
        dropout: share of the hidden units that a step leaves out.
        epochs: most passes over the data, before the layer is added and after.
        patience: passes without a smaller loss of the held rows before a stop.
        batch: rows of a batch.
        learning_rate: of Adam.
        validation: share of the rows, with their noisy labels, held out for early stopping.
        random_state: seed.

    Attributes:
        noise_matrix_: ``(K, K)`` ``[observed, true]``, columns sum to one.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to ``(N, d)`` features and ``(N,)`` noisy labels."""
        x, seen, params, key = self._prepare(X, y)
        first, second = jax.random.split(key)
        params = self._trained(params, x, seen, first, _soft_loss)
        found = jax.nn.one_hot(jnp.argmax(_logits(params["net"], x), 1), seen.shape[1])
        params["channel"] = jnp.log(_confusion(found, seen))
        params = self._trained(params, x, seen, second, _channel_loss)
        self.params_ = params
        self.noise_matrix_ = np.asarray(jax.nn.softmax(params["channel"]).T)
        return self
