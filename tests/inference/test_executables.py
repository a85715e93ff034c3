"""Executables that an earlier process left are found without tracing, and only where they fit."""

import functools
import importlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference import executables
from inference.executables import Kept, Program, keep
from nbmodels.core import jax_settings

PACKAGE = "package_of_programs"
SOURCE = """
from functools import partial
from typing import NamedTuple

import jax

TRACED = []


class Pair(NamedTuple):
    a: object
    b: object


class Summed(NamedTuple):
    one: object

    def sum(self):
        return self.one.sum()


def scaled(pair, by=1.0, how=abs):
    TRACED.append(by)
    return Pair(how(pair.a) * by + pair.b.sum(), pair.b)


def calls_python(x):
    TRACED.append(1)
    return jax.pure_callback(lambda x: x + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def within():
    def inner(pair):
        TRACED.append(1)
        return pair.a

    return inner
"""
STATIC = ("by", "how")


class Shelf(dict):
    """Storage in memory."""

    put = dict.__setitem__


@pytest.fixture
def shelf(monkeypatch):
    """Where executables of the package are kept."""
    found = Shelf()
    kept = Kept(found, (PACKAGE,), jax_settings._uncached)
    monkeypatch.setattr(executables._Current, "kept", kept)
    return found


@pytest.fixture
def source(tmp_path, monkeypatch, shelf):
    """The package's file, as if it were older than the process."""
    monkeypatch.setattr(executables, "_STARTED", time.time() + 3600)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / PACKAGE / "__init__.py"
    file.parent.mkdir()
    file.write_text(SOURCE)
    yield file
    sys.modules.pop(PACKAGE, None)
    forget()


def forget():
    """What a new process has not read yet."""
    executables._sources.cache_clear()
    executables._machine.cache_clear()


def load():
    """The package as a new process has it: JAX knows none of its functions."""
    forget()
    sys.modules.pop(PACKAGE, None)
    importlib.invalidate_caches()
    return importlib.import_module(PACKAGE)


def pair(package, n=3, dtype=np.float32):
    return package.Pair(np.linspace(-1, 1, n).astype(dtype), np.ones(n, dtype))


def called(make=pair, *args, options=None, **kwargs):
    """Value of a call in a new process, and how often it was traced there.

    Args:
        make: the first argument, of the package.
        args, kwargs: the others.
        options: of the compiler.
    """
    package = load()
    value = Program(package.scaled, options, STATIC)(make(package), *args, **kwargs)
    return value, len(package.TRACED)


def test_it_is_traced_once_for_all_processes(source, shelf):
    first, traced = called(by=2.0)
    assert traced == 1
    again, traced = called(by=2.0)
    assert traced == 0
    package = sys.modules[PACKAGE]
    assert type(again) is package.Pair
    np.testing.assert_array_equal(first.a, again.a)
    plain = jax.jit(package.scaled, static_argnames=STATIC)(pair(package), by=2.0)
    np.testing.assert_array_equal(plain.a, again.a)
    assert (again.a.dtype, again.a.weak_type) == (plain.a.dtype, plain.a.weak_type)
    assert again.a.committed == plain.a.committed
    assert len(shelf) == 1


def on_device(package):
    return jax.tree.map(jax.device_put, pair(package))


def test_arrays_of_both_kinds_and_static_arguments_by_place_share_one(source):
    called(pair, 2.0, abs)
    assert called(on_device, how=abs, by=2.0)[1] == 0


def test_a_program_goes_on_with_what_it_has_loaded(source, shelf):
    package = load()
    program = Program(package.scaled, None, STATIC)
    first = program(pair(package))
    shelf.clear()
    np.testing.assert_array_equal(first.a, program(pair(package)).a)
    assert len(package.TRACED) == 1
    assert not shelf


def test_a_process_holds_a_limited_number_of_executables(source, shelf, monkeypatch):
    """Each has memory maps, without which the compiler crashes."""
    monkeypatch.setattr(executables, "_MOST_HELD", 2)
    package = load()
    program = Program(package.scaled, None, STATIC)
    for by in (1.0, 2.0, 3.0):
        program(pair(package), by=by)
    kept = dict(shelf)
    shelf.clear()
    program(pair(package), by=3.0)
    program(pair(package), by=2.0)  # used last
    assert not shelf
    program(pair(package), by=1.0)  # forgotten, and so compiled again
    assert len(shelf) == 1
    shelf.update(kept)
    program(pair(package), by=3.0)  # forgotten, and found in the storage
    program(pair(package), by=1.0)
    assert len(shelf) == 3


def in_tuple(package):
    one = pair(package)
    return package.Pair(one.a, package.Summed(one.b))


def in_notebook(package):
    one = pair(package)
    return package.Pair(one.a, Summed(one.b))


@jax.tree_util.register_pytree_node_class
class Summed(tuple):
    """A structure of this module, which is of no package that is kept."""

    def sum(self):
        return sum(self)

    def tree_flatten(self):
        return tuple(self), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(leaves)


UNOPTIMISED = {"xla_backend_optimization_level": 0}


@pytest.mark.parametrize(
    "other",
    [
        lambda: called(lambda package: pair(package, n=4), by=2.0),
        lambda: called(lambda package: pair(package, dtype=np.int32), by=2.0),
        lambda: called(in_tuple, by=2.0),
        lambda: called(lambda package: package.Pair(1.0, pair(package).b), by=2.0),
        lambda: called(by=3.0),
        lambda: called(by=2.0, how=functools.partial(pow, exp=2)),
        lambda: called(),
        lambda: called(by=2.0, options=UNOPTIMISED),
    ],
    ids=["shape", "type", "structure", "number", "static", "function", "default", "options"],
)
def test_another_call_has_another_executable(source, shelf, other):
    called(by=2.0)
    assert other()[1] == 1
    assert len(shelf) == 2
    assert other()[1] == 0


@pytest.mark.parametrize(
    "setting", [lambda: jax.enable_x64(False), lambda: jax.default_matmul_precision("highest")]
)
def test_other_settings_of_jax_have_another_executable(source, shelf, setting):
    called()
    with setting():
        assert called()[1] == 1
        assert called()[1] == 0
    assert len(shelf) == 2


def test_a_changed_source_has_another_executable(source):
    before, _ = called()
    source.write_text(SOURCE.replace("* by +", "* by -"))
    after, traced = called()
    assert traced == 1
    assert not np.array_equal(before.a, after.a)


def test_a_source_newer_than_the_process_keeps_nothing(source, shelf, monkeypatch):
    monkeypatch.setattr(executables, "_STARTED", time.time() - 3600)
    assert called()[1] == 1
    assert not shelf


def test_another_version_of_a_package_has_another_executable(source, shelf, monkeypatch):
    called()
    monkeypatch.setattr(executables.metadata, "version", lambda _: "0")
    assert called()[1] == 1
    assert len(shelf) == 2


def test_other_flags_of_the_compiler_have_another_executable(source, shelf, monkeypatch):
    called()
    monkeypatch.setenv("XLA_FLAGS", "--xla_of_another_process")
    assert called()[1] == 1
    assert len(shelf) == 2


@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b"", lambda b: b[:200] + b"x" * 99])
def test_a_damaged_executable_is_replaced(source, shelf, damage):
    first, _ = called()
    ((name, whole),) = shelf.items()
    shelf[name] = damage(whole)
    again, traced = called()
    assert traced == 1
    np.testing.assert_array_equal(first.a, again.a)
    assert called()[1] == 0


def test_what_does_not_fit_its_name_is_compiled(source, shelf):
    """An executable of another shape: what JAX says of it reaches nobody."""
    called(lambda package: pair(package, n=4))
    called()
    four, three = shelf
    shelf[three] = shelf[four]
    value, traced = called()
    assert traced == 1
    assert value.a.shape == (3,)


def test_what_jax_has_read_from_its_cache_is_not_written_again(source, shelf, tmp_path):
    """It would lack its kernels: an executable is compiled anew, whatever JAX's cache holds."""
    hits = []
    jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
    package = load()
    for _ in range(2):  # JAX's cache has it
        program = jax.jit(package.scaled, static_argnames=STATIC)
        program(pair(package))
        program.clear_cache()
    first, _ = called()
    hits.clear()
    again, traced = called()
    assert traced == 0
    assert "/jax/compilation_cache/cache_hits" not in hits
    np.testing.assert_array_equal(first.a, again.a)


def test_what_jax_cannot_write_is_left_to_its_own_cache(source, shelf):
    x = np.ones(3, np.float32)
    for _ in range(2):
        package = load()
        program = Program(package.calls_python)
        for _ in range(2):
            np.testing.assert_array_equal(program(x), x + 1)
        assert len(package.TRACED) == 1
    assert list(shelf.values()) == [executables._UNWRITTEN]


def of_a_notebook(pair):
    return pair


def test_functions_of_other_packages_are_not_kept(source, shelf):
    """Their source may change without the key."""
    for how in (of_a_notebook, functools.partial(of_a_notebook), lambda x: x):
        assert called(how=how)[1] == 1
    assert called(in_notebook)[1] == 1
    package = load()
    for function in (of_a_notebook, package.within()):
        Program(function)(pair(package))
    assert not shelf


def test_it_may_be_traced_as_any_function(source, shelf):
    package = load()
    program, one = Program(package.scaled, None, STATIC), pair(package)
    np.testing.assert_array_equal(jax.jit(program)(one).a, program(one).a)
    batch = jax.tree.map(lambda x: np.stack([x, x]), one)
    assert jax.vmap(program)(batch).a.shape == (2, 3)
    gradient = jax.grad(lambda a: program(package.Pair(a, one.b)).a.sum())(jnp.ones(3))
    np.testing.assert_array_equal(gradient, np.ones(3))
    with jax.disable_jit():
        np.testing.assert_array_equal(program(one).a, abs(one.a) + 3)
    assert len(shelf) == 1  # of the call from the host


def test_nothing_is_kept_unless_asked(source, shelf):
    keep(None)
    called()
    assert called()[1] == 1
    assert not shelf


def test_errors_of_the_function_are_its_own(source):
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'a'"):
        called(lambda package: (1.0, 2.0))


@pytest.mark.parametrize("setting", ["jax_debug_nans", "jax_debug_infs"])
def test_a_user_who_looks_for_an_error_finds_the_operation(source, shelf, setting):
    package = load()
    by = float("nan" if setting == "jax_debug_nans" else "inf")
    jax.config.update(setting, True)
    try:
        with pytest.raises(FloatingPointError, match="encountered in"):
            Program(package.scaled, None, STATIC)(on_device(package), by=by)
    finally:
        jax.config.update(setting, False)
    assert not shelf
