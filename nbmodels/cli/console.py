"""What all commands share: errors as one line, stages with their times, failed writing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from nbmodels.errors import counted

if TYPE_CHECKING:
    from rich.console import Console

#: Arguments of the library under the names that the command line gives them.
_OPTIONS = {
    name: f"--{name}"
    for name in (
        "label",
        "task",
        "worker",
        "text",
        "features",
        "groups",
        "truth",
        "checked",
        "noise",
        "training",
        "estimator",
        "weight",
        "alpha",
        "margin",
        "share",
        "encoding",
    )
} | {"n_rows": "--rows"}


class InputError(Exception):
    """Input that a command cannot use: shown as one line, with exit code 2."""


@contextlib.contextmanager
def input_errors(names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn bad input into one line that names the argument, and exit code 2; Ctrl-C into one, too.

    Args:
        names: arguments of the library under other names than options of the same name.
    """
    from nbmodels.errors import DataError

    try:
        try:
            yield
        except DataError as error:
            from nbmodels.cli.wording import worded

            message = worded(" ".join(str(error).split()))
            name, colon, rest = message.partition(":")
            shown = _OPTIONS | dict(names or {})
            if colon and name in shown:
                message = f"{shown[name]}:{rest}"
            raise InputError(message) from error
    except InputError as error:
        typer.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        typer.echo("Interrupted; files are written whole or not at all", err=True)
        raise typer.Exit(130) from error


def report_blanks(console: Console, count: int) -> None:
    """Say how many labels have blanks around them, which are left out."""
    if count:
        console.print(f"Blanks around {counted(count, 'label')} are ignored", highlight=False)


@contextlib.contextmanager
def stages(console: Console) -> Iterator[Callable[[str], None]]:
    """A line for each stage of the work, with its time."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description}"))
    progress = Progress(*columns, TimeElapsedColumn(), console=console)
    current: list[Any] = []

    def done() -> None:
        for task in current:
            progress.update(task, total=1, completed=1)
        current.clear()

    def stage(name: str) -> None:
        done()
        progress.start()
        current.append(progress.add_task(name, total=None))

    try:
        yield stage
        done()
    finally:
        if progress.live.is_started:  # otherwise it would leave an empty line
            progress.stop()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Report a full disk, or a directory that went away, without a traceback."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
