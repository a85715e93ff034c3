"""Executables kept between processes, which find them without tracing a function.

JAX's persistent cache finds a program by its lowered form, so that each process traces and lowers
every function before it can look. Here a program is found by what determines that form: the name of
the function, its static arguments, the structure, shapes and types of the others, JAX's settings,
the versions of packages, and the source files of those that the function and its arguments are
from. What these do not determine has no key and is compiled as ever: functions within functions,
functions and classes of other packages or of a notebook, arrays on other devices.

A process that replaces functions or constants of the packages must not keep executables.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import itertools
import operator
import os
import pickle
import platform
import sys
import threading
import time
import types
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from functools import cache, cached_property, partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jax.experimental import serialize_executable

#: Other packages that a function may call while it is traced; their versions are part of a key.
_RELEASED = ("jax", "jaxlib", "numpy", "numpyro")

#: Begins the names of LAPACK's functions in an executable that calls them.
_LAPACK = b"lapack_"

#: Kept in the place of an executable that cannot be.
_UNWRITTEN = b"unwritten"

#: Executables that a process holds. Each has some 15 memory maps, of which Linux allows 65,530, and
#: a process that has no more of them crashes as it compiles.
_MOST_HELD = 500

#: JAX's settings, whose names are made at run time.
_CONFIG: Any = jax.config

#: Source files changed later may differ from what this process runs.
_STARTED = time.time()


class Storage(Protocol):
    """Bytes by name, kept between processes; failures raise nothing."""

    def get(self, name: str) -> bytes | None:
        """What is kept by this name, or None."""

    def put(self, name: str, value: bytes) -> None:
        """Keep it, if that is possible."""


class Kept(NamedTuple):
    """Where executables are kept, and of which functions.

    Attributes:
        storage: keeps them.
        packages: top-level packages of these functions; all their source files are part of a key.
        uncached: a scope in which JAX's cache is off: an executable that JAX has read from it
            cannot be written again as a whole.
    """

    storage: Storage
    packages: tuple[str, ...]
    uncached: Callable[[], AbstractContextManager[None]]


class _Current:
    """What :func:`keep` has set, for all threads."""

    kept: Kept | None = None


def keep(kept: Kept | None) -> None:
    """Keep executables from now on.

    Args:
        kept: where; None for nowhere.
    """
    _Current.kept = kept


class _Executables:
    """Executables of this process, by program and call; those used longest ago are forgotten."""

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, Callable[..., Any] | None] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, find: Callable[[], Callable[..., Any] | None]) -> Any:
        """The executable, found where it is not held; None where there is to be none."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        found = find()
        self.put(key, found)
        return found

    def put(self, key: Hashable, found: Callable[..., Any] | None) -> None:
        with self._lock:
            self._found[key] = found
            self._found.move_to_end(key)
            while len(self._found) > _MOST_HELD:
                self._found.popitem(last=False)


_HELD = _Executables()


class Program:
    """``jax.jit`` of a function, with executables that are kept where it runs on one CPU.

    Args:
        function: to be compiled.
        compiler_options: of ``jax.jit``.
        static_argnames: of ``jax.jit``.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        compiler_options: dict[str, Any] | None = None,
        static_argnames: str | tuple[str, ...] = (),
    ) -> None:
        static = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
        self._function, self._static, self._options = function, static, compiler_options

    @cached_property
    def jitted(self) -> Any:
        """The function under ``jax.jit``, made when it is first needed: most are not."""
        return jax.jit(self._function, static_argnames=self._static, compiler_options=self._options)

    @cached_property
    def _arguments(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self._function).parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's value; of arrays on the CPU that is JAX's default device."""
        kept = _Current.kept
        if kept is None or _debugging() or len(_cpus()) > 1:
            return self.jitted(*args, **kwargs)
        at = list(zip(self._arguments, args, strict=False))
        free = tuple(value for name, value in at if name not in self._static)
        named = {name: value for name, value in kwargs.items() if name not in self._static}
        fixed = {n: v for n, v in [*at, *kwargs.items()] if n in self._static}
        leaves, structure = jax.tree.flatten((free, named))
        call = (tuple(sorted(fixed.items())), structure, tuple(map(_type, leaves)), _settings())
        key = (self, call)
        find = partial(self._found, kept, call, args, kwargs)
        if (executable := _HELD.get(key, find)) is None:
            return self.jitted(*args, **kwargs)
        try:
            return executable(*free, **named)
        except (TypeError, ValueError, jax.errors.JaxRuntimeError):  # it does not fit, after all
            _HELD.put(key, None)
            return self.jitted(*args, **kwargs)

    def _found(self, kept: Kept, call: Any, args: Any, kwargs: Any) -> Callable[..., Any] | None:
        """The executable of a call, from the storage or compiled and stored; None without a key."""
        of = self._function
        about = (of.__module__, of.__qualname__, self._static, repr(self._options))
        name = _key(kept.packages, about, *call)
        if name is None:
            return None
        packed = kept.storage.get(name)
        if packed == _UNWRITTEN:
            return None
        if packed is not None:
            with contextlib.suppress(Exception):  # whatever is wrong with it, it can be compiled
                return _unpacked(packed)
        lowered = self.jitted.lower(*args, **kwargs)
        with kept.uncached():
            compiled = lowered.compile()
        kept.storage.put(name, _packed(compiled))
        return compiled


# What an executable is found by -------------------------------------------------------------------


def _type(leaf: Any) -> tuple[Any, ...] | None:
    """What a program depends on of an argument; None of what is no array on the CPU."""
    if isinstance(leaf, jax.core.Tracer):
        return None
    if isinstance(leaf, jax.Array):
        weak = getattr(leaf, "weak_type", False)  # random keys have none
        return (leaf.shape, leaf.dtype, weak) if leaf.devices() == _cpus() else None
    if isinstance(leaf, np.ndarray | np.generic):
        return (leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype), False)
    if isinstance(leaf, bool | int | float):
        return ((), jax.dtypes.canonicalize_dtype(type(leaf)), type(leaf) is not bool)
    return None


def _debugging() -> bool:
    """Whether the user looks for an error, which ``jax.jit`` then finds operation by operation."""
    return bool(_CONFIG.jax_disable_jit or _CONFIG.jax_debug_nans or _CONFIG.jax_debug_infs)


@cache
def _cpus() -> frozenset[Any]:
    return frozenset(jax.devices("cpu"))


def _settings() -> tuple[Any, ...]:
    found: tuple[Any, ...] = _setting_reader()(_CONFIG)
    return found


@cache
def _setting_reader() -> Callable[[Any], Any]:
    """Reads JAX's settings, but those of its own cache, which no program depends on."""
    names = sorted(name for name in _CONFIG.values if "cache" not in name)
    return operator.attrgetter(*(name for name in names if hasattr(_CONFIG, name)))


def _key(
    packages: tuple[str, ...],
    name: tuple[Any, ...],
    fixed: tuple[Any, ...],
    structure: Any,
    types_of: tuple[Any, ...],
    settings: tuple[Any, ...],
) -> str | None:
    """A name for what an executable was compiled of and for, the same in every process, or None.

    Args:
        packages: whose functions and classes may be part of it.
        name: module and name of the function, with its options.
        fixed: static arguments by name.
        structure, types_of: of the other arguments.
        settings: JAX's.
    """
    module, function, *_ = name
    known = module.partition(".")[0] in packages and "<" not in function and None not in types_of
    if not known or (sources := _sources(packages)) is None:
        return None
    file = io.BytesIO()
    try:
        about = (sources, _machine(), name, fixed, structure, repr(types_of), repr(settings))
        _ByName(file, packages).dump(about)
    except Exception:  # a function without a name, or of another package
        return None
    return f"traced-{hashlib.blake2b(file.getvalue(), digest_size=32).hexdigest()}"


class _ByName(pickle.Pickler):
    """Writes functions and classes by name; refuses those that no source or version stands for."""

    def __init__(self, file: io.BytesIO, packages: tuple[str, ...]) -> None:
        super().__init__(file, protocol=5)
        self.fast = True  # an object twice is written like two that are equal
        self._known = {*packages, *_RELEASED, *sys.stdlib_module_names}

    def reducer_override(self, obj: Any) -> Any:
        named = isinstance(obj, type | types.FunctionType | types.BuiltinFunctionType)
        if named and (obj.__module__ or "").partition(".")[0] not in self._known:
            raise pickle.PicklingError(f"{obj} is of no package that is part of the key")
        return NotImplemented


@cache
def _sources(packages: tuple[str, ...]) -> str | None:
    """Digest of the source files of packages; None where they may not be what the process runs."""
    digest = hashlib.blake2b()
    for package in packages:
        folder = Path(import_module(package).__file__ or "").parent
        files = sorted(folder.rglob("*.py"))
        if not files:  # the package is read from an archive
            return None
        for file in files:
            about = file.stat()
            if max(about.st_mtime, about.st_ctime) > _STARTED:
                return None
            digest.update(f"{package} {file.relative_to(folder)} {about.st_size}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _machine() -> str:
    """Versions, and what machine code depends on: the processor and flags of the compiler."""
    versions = []
    for package in _RELEASED:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions.append(metadata.version(package))
    about = (sys.version, sys.platform, platform.machine(), platform.processor(), _instructions())
    return repr((*about, versions, os.environ.get("XLA_FLAGS")))


def _instructions() -> list[str]:
    """What Linux says of the first core's model and instructions."""
    wanted = ("model", "flags", "features", "cpu part", "isa")
    try:
        with Path("/proc/cpuinfo").open() as lines:
            first = itertools.takewhile(str.strip, lines)
            return [line for line in first if line.lower().startswith(wanted)]
    except OSError:
        return []


# Bytes --------------------------------------------------------------------------------------------


def _packed(compiled: Any) -> bytes:
    """An executable, or that JAX cannot write it, which is left to JAX's cache from then on."""
    try:
        return zlib.compress(pickle.dumps(serialize_executable.serialize(compiled)), 1)
    except Exception:  # of many kinds
        return _UNWRITTEN


@cache
def _load_lapack() -> None:
    """Load what JAX loads as it lowers a call of LAPACK: an executable crashes without it."""
    jax.jit(jax.lax.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), np.float32))


def _unpacked(packed: bytes) -> Callable[..., Any]:
    """The executable of :func:`_packed`; a checksum finds what was damaged."""
    payload, in_tree, out_tree = pickle.loads(zlib.decompress(packed))
    if _LAPACK in payload:
        _load_lapack()
    found: Callable[..., Any] = serialize_executable.deserialize_and_load(
        payload, in_tree, out_tree, backend="cpu"
    )
    return found
