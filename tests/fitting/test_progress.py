"""Progress: nothing of short work, plain lines in logs, a bar on terminals, one at a time."""

import contextlib
import io
import re
import time
from types import SimpleNamespace

import pytest

from nbmodels.fitting import progress
from nbmodels.fitting.progress import Progress

COUNT = re.compile(r"(\d+) of (\d+)")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def quick(monkeypatch):
    """Seconds become hundredths."""
    for name in ("_DELAY", "_TICK", "_LINE"):
        monkeypatch.setattr(progress, name, getattr(progress, name) / 100)


def shown(work, stream=None, setting=None):
    stream = io.StringIO() if stream is None else stream
    with contextlib.redirect_stderr(stream):
        work(Progress(setting))
    return stream.getvalue()


def counting(n, total, pause=0.02):
    def work(one):
        with one.bar("working", total) as bar:
            for _ in range(n):
                time.sleep(pause)
                bar.update()

    return work


def test_short_work_prints_nothing():
    assert shown(counting(3, 3, 0.001)) == ""
    assert shown(counting(3, 3, 0.001), Terminal()) == ""


@pytest.mark.usefixtures("quick")
def test_lines_of_a_log():
    text = shown(counting(25, 25))
    lines = text.splitlines()
    assert 2 <= len(lines) <= 6  # one every tenth of a second
    assert not set("\r\x1b") & set(text)
    counts = [COUNT.search(line) for line in lines]
    assert all(int(found[1]) <= int(found[2]) == 25 for found in counts)
    assert all(line.startswith("working: ") and "so far" in line for line in lines)
    assert " left" in lines[-1]


@pytest.mark.usefixtures("quick")
def test_a_total_that_was_too_low_is_dropped():
    lines = shown(counting(25, 5)).splitlines()
    assert "of" not in lines[-1].split(",")[0]
    assert " left" not in lines[-1]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_the_time_left_is_that_of_a_steady_pace(stream, monkeypatch):
    """The first of 400 units takes six seconds, 50 more take as many; no hour is announced."""
    clock = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(time=lambda: clock[0]))

    def work(one):
        with one.bar("working", 400) as bar:
            for n in range(51):
                clock[0] += 6.0 if n == 0 else 0.02
                bar.update()
                time.sleep(0.005)
            assert bar.left() == pytest.approx(0.02 * 349)

    text = shown(work, stream(), setting=True)
    announced = re.findall(r"(?:, |<)(\d+:\d\d)(?: left|\])", text)
    assert announced
    assert set(announced) <= {"0:07", "0:08"}


@pytest.mark.usefixtures("quick")
def test_a_step_without_news_is_seen_to_be_alive():
    text = shown(lambda one: counting(1, 2, 0.3)(one))
    assert len(text.splitlines()) >= 2


@pytest.mark.usefixtures("quick")
def test_a_bar_on_a_terminal_goes_away():
    text = shown(counting(25, 25), Terminal())
    assert "working" in text
    assert text.count("\r") > 5
    assert "\n" not in text
    assert text.split("\r")[-2].strip() == ""


@pytest.mark.usefixtures("quick")
def test_one_at_a_time():
    def work(one):
        with one.iterations() as report, one.bar("outer", 2) as bar:
            for i in range(2):
                report(i, -1.5)
                bar.update()
                counting(10, None)(one)

    text = shown(work)
    assert {line.split(":")[0] for line in text.splitlines()} == {"outer"}


def test_where_it_was_asked_for_and_where_it_was_refused():
    assert "working" in shown(counting(1, 1), setting=True)
    assert shown(counting(1, 1), setting=False) == ""
    with Progress(False).iterations() as report:
        assert report is None


def test_an_error_ends_the_display():
    with pytest.raises(RuntimeError), Progress(True).bar("working"):
        raise RuntimeError
    assert progress._display.get() is None
