"""Programs of two kinds in one folder of a limited size."""

import threading

import pytest

from nbmodels.core.program_folder import ProgramFolder, usable


def names(path):
    return {file.name.removesuffix("-cache") for file in path.glob("*-cache")}


@pytest.fixture
def folder(tmp_path):
    return ProgramFolder(tmp_path, 100)


def test_what_is_put_is_found(folder, tmp_path):
    assert folder.get("a") is None
    folder.put("a", b"one")
    folder.put("a", b"two")
    assert folder.get("a") == b"two"
    assert usable(tmp_path, 0)  # which removes what has no date
    assert {file.name for file in tmp_path.iterdir()} == {"a-cache", "a-atime", ".lockfile"}


def test_those_used_longest_ago_go_first(folder, tmp_path):
    for name in "abc":
        folder.put(name, bytes(40) if name == "c" else bytes(30))
    folder.get("a")
    folder.put("d", bytes(30))
    assert names(tmp_path) == {"a", "c", "d"}
    assert not (tmp_path / "b-atime").exists()


def test_a_program_larger_than_the_limit_is_not_kept(folder, tmp_path):
    folder.put("a", bytes(60))
    folder.put("b", bytes(101))
    assert names(tmp_path) == {"a"}


def test_a_folder_that_is_none_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    folder = ProgramFolder(tmp_path / "file", 100)
    folder.put("a", b"one")
    assert folder.get("a") is None


def test_writing_waits_for_the_lock(folder, tmp_path):
    import filelock

    with filelock.FileLock(tmp_path / ".lockfile"):
        writer = threading.Thread(target=folder.put, args=("a", b"one"))
        writer.start()
        writer.join(0.2)
        assert writer.is_alive()
        assert folder.get("a") is None
    writer.join(10)
    assert folder.get("a") == b"one"


def test_what_was_not_written_to_its_end_is_removed(folder, tmp_path, monkeypatch):
    def full(self, target):
        raise OSError

    monkeypatch.setattr(type(tmp_path), "replace", full)
    folder.put("a", bytes(90))
    assert not list(tmp_path.glob("*.part"))
    (tmp_path / "b.part").write_bytes(b"of a killed process")
    usable.cache_clear()
    assert usable(tmp_path, 0)
    assert not list(tmp_path.glob("*.part"))
