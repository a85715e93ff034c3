"""Progress of long calls: the one place that decides whether, when and how it is shown.

The work only counts. A thread draws: after three seconds, so that short work prints nothing, and
then once a second, so that a long step without news is seen to be alive. On a terminal and in a
notebook it is a bar by tqdm; elsewhere, in logs, a plain line every ten seconds.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TextIO

#: Seconds after which progress appears by itself, between ticks of a bar, and between lines.
_DELAY, _TICK, _LINE = 3.0, 1.0, 10.0

#: Units, and share of all units, that are timed before the time left is estimated. The first is not
#: among them: it compiles the programs of the others, and takes a hundred times as long.
_TIMED, _SHARE = 2, 0.05

#: A bar with a total; what is filled in is the time left.
_BAR = "{{l_bar}}{{bar}}| {{n_fmt}}/{{total_fmt}} [{{elapsed}}<{}{{postfix}}]"

#: Called with the number of iterations and the value that they improve.
Report = Callable[[int, float], None]


class Task:
    """A count of work; drawing is left to others.

    Args:
        label: what is done.
        total: number of units, None where it is not known. A count beyond it makes it unknown.
        unit: name of a unit.
    """

    def __init__(self, label: str, total: int | None = None, unit: str = "step") -> None:
        self.label, self.total, self.unit = label, total, unit
        self.n, self.note, self.began = 0, "", time.time()
        self._first: tuple[int, float] | None = None

    def update(self, n: int = 1) -> None:
        """Count more units."""
        self.n += n
        if self._first is None:
            self._first = self.n, time.time()
        if self.total is not None and self.n > self.total:
            self.total = None

    def left(self) -> float | None:
        """Seconds to the total at the pace since the first unit; None before it is known."""
        if self.total is None or self._first is None:
            return None
        counted, since = self.n - self._first[0], time.time() - self._first[1]
        if counted < max(_TIMED, _SHARE * self.total):
            return None
        return since / counted * (self.total - self.n)


@dataclass(frozen=True)
class Progress:
    """Whether progress is shown.

    Attributes:
        shown: True from the start, False for nothing, None after three seconds.
    """

    shown: bool | None = None

    @contextlib.contextmanager
    def bar(self, label: str, total: int | None = None, unit: str = "step") -> Iterator[Task]:
        """Count ``total`` units of work. Inside of another bar there is still one on screen."""
        task = Task(label, total, unit)
        outer = _display.get()
        if self.shown is False or outer is not None:
            tasks = [] if outer is None else outer.tasks
            tasks.append(task)
            try:
                yield task
            finally:
                tasks.remove(task)
            return
        display = _Display(task, 0.0 if self.shown else _DELAY)
        token = _display.set(display)
        try:
            yield task
        finally:
            _display.reset(token)
            display.close()

    @contextlib.contextmanager
    def iterations(self, quantity: str = "objective") -> Iterator[Report | None]:
        """Follow an iteration; None where nothing is shown.

        Args:
            quantity: name of the value that is reported.
        """
        with self.bar("fitting") as task:

            def report(n_iter: int, value: float) -> None:
                task.n, task.note = n_iter, f"{quantity} {value:.6g}"

            yield None if self.shown is False else report


class _Display:
    """Draws the tasks of a call from a thread of its own, until it is closed."""

    def __init__(self, task: Task, delay: float) -> None:
        self.tasks = [task]
        self._delay, self._stream, self._done = delay, sys.stderr, threading.Event()
        self._thread = threading.Thread(target=self._draw, name="nbmodels-progress", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._done.set()
        self._thread.join()

    def _now(self) -> Task:
        """The last task whose total is known, else the last: that which says most."""
        known = [task for task in self.tasks if task.total is not None]
        return (known or self.tasks)[-1]

    def _draw(self) -> None:
        if self._done.wait(self._delay):
            return
        # a stream that was closed meanwhile must not end in a thread's traceback
        with contextlib.suppress(OSError, ValueError):
            draw = self._bar if _interactive(self._stream) else self._lines
            draw(self._stream)

    def _bar(self, stream: TextIO) -> None:
        from tqdm.auto import tqdm

        bar: Any = tqdm(total=self._now().total, leave=False, file=stream, desc=self._now().label)
        while True:
            task = self._now()
            bar.start_t, bar.n, bar.total, bar.unit = task.began, task.n, task.total, task.unit
            # tqdm's own estimate counts the first unit
            bar.bar_format = None if task.total is None else _BAR.format(_left(task) or "?")
            bar.set_description_str(task.label, refresh=False)
            bar.set_postfix_str(task.note, refresh=False)
            bar.refresh()
            if self._done.wait(_TICK):
                bar.close()
                return

    def _lines(self, stream: TextIO) -> None:
        while True:
            stream.write(f"{_line(self._now())}\n")
            stream.flush()
            if self._done.wait(_LINE):
                return


_display: ContextVar[_Display | None] = ContextVar("nbmodels_progress", default=None)


def _interactive(stream: TextIO) -> bool:
    """Whether a line can be drawn again: on a terminal, or in a notebook."""
    return stream.isatty() or "IPKernelApp" in _ipython()


def _ipython() -> Any:
    """Configuration of the running IPython, empty outside of it."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return {} if shell is None else shell.config


def _line(task: Task) -> str:
    """Progress as one line of text."""
    elapsed = time.time() - task.began
    count = f"{task.n}" if task.total is None else f"{task.n} of {task.total}"
    parts = [f"{task.label}: {count} {task.unit}s", f"{_clock(elapsed)} so far"]
    if left := _left(task):
        parts.append(f"{left} left")
    return ", ".join([*parts, *([task.note] if task.note else [])])


def _left(task: Task) -> str:
    """The time left, empty where it is not known."""
    left = task.left()
    return "" if left is None else _clock(left)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
