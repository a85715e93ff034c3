"""``docs/architecture.md`` lists every module of both packages, all rooms, and the import rules."""

import re
from pathlib import Path

import pytest
from test_layering import FACES, MAY_IMPORT

import inference
import nbmodels

ROOT = Path(nbmodels.__file__).parent
REPOSITORY = Path(__file__).parents[1]
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text()


def listed(page):
    """Lines of the list of modules, by room; modules named from the room on."""
    rooms, room = {}, None
    for line in page.splitlines():
        if heading := re.match(r"### `([\w/]+)/`: \S", line):
            room = rooms.setdefault(heading[1], [])
        elif line.startswith("#"):
            room = None
        elif room is not None and line.startswith("- "):
            entry = re.fullmatch(r"- `([\w/]+\.py)`: \S.*", line)
            assert entry, f"no module with a line of its own: {line!r}"
            room.append(entry[1])
    return rooms


def modules():
    """The tree: modules by room, ``__init__`` left out."""
    out = {"inference": [], "nbmodels": []}
    for top in (Path(inference.__file__).parent, ROOT):
        for path in top.rglob("*.py"):
            parts = path.relative_to(top.parent).parts
            room = parts[:2] if parts[0] == "nbmodels" and len(parts) > 2 else parts[:1]
            rest = "/".join(parts[len(room) :])
            out.setdefault("/".join(room), [])
            if path.name != "__init__.py":
                out["/".join(room)].append(rest)
    return out


def rules(page):
    """The table of who may import whom."""
    rows = re.findall(r"^\| `(\w+)` \| (.*)\|$", page, re.MULTILINE)
    every = "all of the above"
    return {
        name: every if every in allowed else set(re.findall(r"`(\w+)`", allowed))
        for name, allowed in rows
    }


def test_every_room_is_on_the_page():
    assert set(listed(PAGE)) == set(modules())


@pytest.mark.parametrize("room", modules())
def test_modules_of_a_room_are_those_on_the_page(room):
    entries = listed(PAGE).get(room, [])
    assert sorted(entries) == sorted(modules()[room])
    assert len(entries) == len(set(entries))


def test_import_rules_are_those_of_the_layering_test():
    assert rules(PAGE) == {**MAY_IMPORT, **dict.fromkeys(FACES, "all of the above")}


def test_files_that_the_page_names_exist():
    for name in re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE.partition("## Rooms and modules")[0]):
        assert (ROOT / name).exists() or (REPOSITORY / name).exists(), name
    for name in re.findall(r"\]\((\S+)\)", PAGE):
        assert (REPOSITORY / "docs" / name).exists(), name


def test_names_that_the_page_gives_a_module_are_in_it():
    for room in listed(PAGE):
        for line in PAGE.partition(f"### `{room}/`")[2].partition("\n### ")[0].splitlines():
            if entry := re.match(r"- `([\w/]+\.py)`: (.*)", line):
                source = (ROOT.parent / room / entry[1]).read_text()
                for name in re.findall(r"`([A-Z]\w+)`", entry[2]):
                    assert name in source, f"{name} in {entry[1]}"


def test_a_missing_and_an_invented_module_are_noticed():
    without = PAGE.replace("- `roles.py`", "- `rules.py`")
    entries = listed(without)["nbmodels/core"]
    assert set(modules()["nbmodels/core"]) ^ set(entries) == {"roles.py", "rules.py"}
    assert "nbmodels/cli" not in listed(PAGE.replace("### `nbmodels/cli/`", "### `cli`"))
