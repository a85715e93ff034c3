"""JAX's settings while the library computes: precision, device, compiled programs kept on disk.

A first default fit compiles for seconds; a process that finds the programs of an earlier one on
disk does not. Inside :func:`computing` only, the library's own programs are kept in the user's
cache folder (:mod:`inference.executables`), and those that have no name there by JAX's persistent
compilation cache, whose settings are restored at its end. Where the user has named a folder for
JAX's cache (``JAX_COMPILATION_CACHE_DIR``), or turned it off, nothing is kept and nothing changed.

The environment variable ``NBMODELS_CACHE`` is the one switch: 0 turns it off, a path is another
folder than the platform's.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from inference import executables
from inference.executables import Kept
from nbmodels.core.program_folder import ProgramFolder, usable

#: The switch, and the values that turn the cache off.
SWITCH, _OFF = "NBMODELS_CACHE", ("0", "off", "false", "no")

#: Bytes of the folder beyond which the programs used longest ago are deleted.
_MOST_BYTES = 100_000_000

#: Packages whose source files decide what a program computes.
_PACKAGES = ("inference", "nbmodels")

_DIR, _ENABLED = "jax_compilation_cache_dir", "jax_enable_compilation_cache"


@contextlib.contextmanager
def computing(double: bool) -> Iterator[None]:
    """A scope in which the library computes.

    Products of float32 matrices are taken in float32: GPUs would round their factors to 11 bits
    (TF32), with which an objective is no longer monotone. Float64, which small data have, is for
    the CPU: programs take a GPU's compiler several times as long, and most GPUs compute in float64
    at a small part of their speed. A device that the user has set (``jax.default_device``) is kept.

    Args:
        double: whether in float64.
    """
    with (
        jax.enable_x64(double),
        jax.default_matmul_precision("highest"),
        _on_cpu() if double else contextlib.nullcontext(),
        kept_programs(),
    ):
        yield


def _on_cpu() -> AbstractContextManager[None]:
    """A scope whose programs run on the CPU, unless the user has set a device."""
    settings: Any = jax.config
    if settings.jax_default_device is not None or jax.default_backend() == "cpu":
        return contextlib.nullcontext()
    try:
        return jax.default_device(jax.devices("cpu")[0])
    except RuntimeError:  # JAX is set to the GPU alone (JAX_PLATFORMS)
        return contextlib.nullcontext()


@contextlib.contextmanager
def kept_programs() -> Iterator[None]:
    """A scope in which compiled programs are kept in the user's cache folder; may be nested.

    Several processes may share the folder: reading and writing hold its lock. A folder that cannot
    be written, or a disk without room, turns the cache off for this process.
    """
    _scopes.enter()
    try:
        yield
    finally:
        _scopes.leave()


class _Scopes:
    """Number of open scopes, of all threads; the settings to restore when the last one closes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._before: dict[str, Any] = {}

    def enter(self) -> None:
        with self._lock:
            self._open += 1
            if self._open > 1 or (folder := _folder()) is None:
                return
            settings = {
                _DIR: str(folder),
                "jax_compilation_cache_max_size": _MOST_BYTES,
                # small programs, too: there are many of them
                "jax_persistent_cache_min_compile_time_secs": 0.0,
                # would put files into the folder that its limit does not count
                "jax_persistent_cache_enable_xla_caches": "none",
            }
            self._before = {name: getattr(jax.config, name) for name in settings}
            _update(settings)
            executables.keep(Kept(ProgramFolder(folder, _MOST_BYTES), _PACKAGES, _uncached))

    def leave(self) -> None:
        with self._lock:
            self._open -= 1
            if self._open or not self._before:
                return
            before, self._before = self._before, {}
            executables.keep(None)
            _update(before)
            # JAX opens a folder once; the user may name another one later
            reset_cache()


_scopes = _Scopes()


def _update(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)


#: Held while JAX's cache is off inside a scope that keeps programs.
_off = threading.Lock()


@contextlib.contextmanager
def _uncached() -> Iterator[None]:
    """A scope in which JAX's cache is off, within one in which programs are kept."""
    with _off:
        _update({_ENABLED: False})
        reset_cache()  # JAX looks once whether its cache is on
        try:
            yield
        finally:
            _update({_ENABLED: True})
            reset_cache()


def _folder() -> Path | None:
    """Where programs are kept; None where they are not, or where the user has seen to it."""
    wanted = os.environ.get(SWITCH, "")
    configured = getattr(jax.config, _DIR) is not None
    disabled = not getattr(jax.config, _ENABLED) or wanted.lower() in _OFF
    if configured or disabled:
        return None
    folder = Path(wanted).expanduser() if wanted else _platform_folder()
    return folder if usable(folder, _MOST_BYTES) else None


@cache
def _platform_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("nbmodels", appauthor=False) / f"jax-{jax.__version__}"
