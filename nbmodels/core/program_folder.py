"""The folder of compiled programs, as JAX's cache lays it out: a file each, limited in size.

A program is ``NAME-cache``, and ``NAME-atime`` is when it was last used. Executables that are found
without tracing lie beside those of JAX's cache, which deletes either where they were used longest
ago; several processes may share the folder, since writing holds its lock.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

#: Seconds to wait for another process that has the folder locked.
_PATIENCE = 10.0

_PROGRAM, _STAMP, _PART = "-cache", "-atime", ".part"


class ProgramFolder:
    """Programs by name; a folder that cannot be read or written keeps none.

    Args:
        folder: where; it exists.
        most_bytes: of all programs, beyond which those used longest ago are deleted.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder, self._most = folder, most_bytes

    def get(self, name: str) -> bytes | None:
        """What is kept by this name, or None."""
        try:
            found = (self._folder / f"{name}{_PROGRAM}").read_bytes()
            self._stamp(name)
        except OSError:
            return None
        return found

    def put(self, name: str, value: bytes) -> None:
        """Keep it in the place of an earlier one, if that is possible."""
        import filelock

        if len(value) > self._most:
            return
        part = self._folder / f"{name}{_PART}"
        try:
            with filelock.FileLock(self._folder / ".lockfile", timeout=_PATIENCE):
                self._make_room(len(value))
                try:
                    part.write_bytes(value)
                    self._stamp(name)
                    part.replace(self._folder / f"{name}{_PROGRAM}")  # others read without the lock
                finally:
                    part.unlink(missing_ok=True)  # of a full disk
        except (OSError, NotImplementedError, filelock.Timeout):
            return

    def _stamp(self, name: str) -> None:
        now = time.time_ns().to_bytes(8, "little")
        (self._folder / f"{name}{_STAMP}").write_bytes(now)

    def _make_room(self, wanted: int) -> None:
        programs = list(self._folder.glob(f"*{_PROGRAM}"))
        sizes = {program: program.stat().st_size for program in programs}
        used = {p: int.from_bytes(_stamp_of(p).read_bytes(), "little") for p in programs}
        size = wanted + sum(sizes.values())
        for program in sorted(programs, key=used.__getitem__):
            if size <= self._most:
                return
            size -= sizes[program]
            program.unlink()
            _stamp_of(program).unlink()


@cache
def usable(folder: Path, most_bytes: int) -> bool:
    """Whether the folder can be locked and written, and the disk has room.

    What a killed process left there is removed.

    Args:
        folder: made where it is missing.
        most_bytes: that are to be free.
    """
    import filelock

    try:
        # programs are run as they are read: nobody else may write them
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with filelock.FileLock(folder / ".lockfile", timeout=_PATIENCE):
            for program in folder.glob(f"*{_PROGRAM}"):
                if not _stamp_of(program).exists():  # JAX writes it last
                    program.unlink()
            for part in folder.glob(f"*{_PART}"):  # writing holds the lock
                part.unlink()
        with tempfile.TemporaryFile(dir=folder):
            return shutil.disk_usage(folder).free > most_bytes
    except (OSError, NotImplementedError, filelock.Timeout):
        return False


def _stamp_of(program: Path) -> Path:
    return program.with_name(f"{program.name.removesuffix(_PROGRAM)}{_STAMP}")
