"""Pytree nodes of dataclasses: structures of two classes differ, whatever their fields."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.tree_util import keystr, tree_flatten_with_path

import inference
import nbmodels
from inference.pytree import register_dataclass


def a_class(value):
    """A class whose method returns ``value``; all such classes have the same fields and name."""

    @register_dataclass
    @dataclass(frozen=True, kw_only=True)
    class Constant:
        x: Any
        how: str = field(default="as it is", metadata={"static": True})

        def read(self):
            return 0 * self.x + value

    return Constant


def test_structures_of_two_classes_differ():
    one, other = a_class(1), a_class(2)
    assert jax.tree.structure(one(x=1.0)) != jax.tree.structure(other(x=1.0))
    assert jax.tree.structure(one(x=1.0)) == jax.tree.structure(one(x=2.0))
    assert jax.tree.structure(one(x=1.0)) != jax.tree.structure(one(x=1.0, how="otherwise"))


def test_a_program_is_of_one_class():
    """With JAX's own registration some of the classes run the program of another, on jax 0.10."""
    read = jax.jit(lambda one: one.read())
    classes = [a_class(k) for k in range(100)]
    assert [float(read(each(x=1.0))) for each in classes] == list(range(100))


def test_paths_and_values():
    one = a_class(3)(x={"a": jnp.ones(2)}, how="static")
    ((path, leaf),) = tree_flatten_with_path(one)[0]
    assert keystr(path) == ".x['a']"
    assert leaf.shape == (2,)
    mapped = jax.tree.map(lambda x: x + 1, one)
    assert type(mapped) is type(one)
    assert mapped.how == "static"
    assert mapped.x["a"].tolist() == [2, 2]


@register_dataclass
@dataclass(frozen=True)
class Nothing:
    """A node without fields."""


def test_a_class_without_fields():
    leaves, structure = jax.tree.flatten(Nothing())
    assert leaves == []
    assert jax.tree.unflatten(structure, []) == Nothing()


def test_what_is_no_dataclass_is_refused():
    with pytest.raises(TypeError):
        register_dataclass(int)

    @dataclass
    class Derived:
        x: int
        y: int = field(init=False)

    with pytest.raises(TypeError, match=r"\['y'\]"):
        register_dataclass(Derived)


@pytest.mark.parametrize("package", [inference, nbmodels])
def test_no_class_is_registered_by_jax(package):
    folder = Path(package.__file__).parent
    direct = re.compile(r"^@.*tree_util\.register_dataclass", re.MULTILINE)
    assert not [f.name for f in folder.rglob("*.py") if direct.search(f.read_text())]
