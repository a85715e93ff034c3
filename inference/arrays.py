"""Arrays from the host to the device without a compiled program.

``jnp.asarray``, ``jnp.full`` and their like are programs: each shape is compiled by itself, which
takes longer than a small fit. On the host NumPy makes the arrays, and these functions hand them
over.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import DTypeLike, Key, PyTree


def floating(dtype: DTypeLike | None = None) -> np.dtype:
    """``dtype``, or float64, as the present precision has it."""
    return np.dtype(jax.dtypes.canonicalize_dtype(float if dtype is None else dtype))


def on_device(x: Any, dtype: DTypeLike | None = None) -> Array:
    """As ``jnp.asarray``: values of the host are copied, those of a program stay in it.

    Args:
        x: array, number or nested lists of them.
        dtype: of the result; by default that of ``x`` as the present precision has it.
    """
    if isinstance(x, jax.Array):
        return x if dtype is None or x.dtype == floating(dtype) else jnp.asarray(x, dtype)
    host = np.asarray(x, None if dtype is None else floating(dtype))
    return jax.device_put(host, may_alias=False)


def strongly_typed(tree: PyTree) -> PyTree:
    """Leaves on the device; numbers of Python get the type of the arrays among them.

    By themselves they are weakly typed, for which programs are compiled a second time.
    """
    dtype = jnp.result_type(0.0, *jax.tree.leaves(tree))
    return jax.tree.map(lambda x: on_device(x, dtype if isinstance(x, float) else None), tree)


def one_hot(codes: Any, n: int) -> Any:
    """``(..., n)`` indicators, zeros for other codes; of arrays on the host, too.

    Args:
        codes: array of NumPy or JAX, of whole numbers.
        n: number of codes.
    """
    return (codes[..., None] == np.arange(n)).astype(floating())


def random_key(seed: int) -> Key[Array, ""]:
    """As ``jax.random.key``, which is two programs.

    Args:
        seed: whole number, 0 or more, of 32 bits.
    """
    words = on_device(np.array([0, seed], np.uint32))
    return jax.random.wrap_key_data(words, impl="threefry2x32")
