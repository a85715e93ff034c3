"""The command line: ``nbmodels demo`` and ``nbmodels clean``.

Whatever is heavy is imported inside the commands, so that ``nbmodels --help`` is quick.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Console

    from nbmodels.cli.clean import Noise
    from nbmodels.datasets import NoisyDigits
    from nbmodels.diagnostics.confident_learning import SecondOpinion

app = typer.Typer(
    help="Learn from wrong labels: find them, mend them, and say how sure that is.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    # a fault of ours should show where, not what the table held
    pretty_exceptions_show_locals=False,
)

#: Arguments of the library under the names that the command line gives them.
_OPTIONS = ("label", "text", "features", "truth", "noise", "feedback", "weight", "alpha")


class InputError(Exception):
    """Input that a command cannot use: shown as one line, with exit code 2."""


class NoiseForm(StrEnum):
    """Forms of the noise matrix."""

    full = "full"
    symmetric = "symmetric"
    pooled = "pooled"


class Feedback(StrEnum):
    """Whether features learn from what is found of the labels."""

    full = "full"
    cut = "cut"


@contextlib.contextmanager
def _complaints() -> Iterator[None]:
    """Bad input becomes one line that names the argument, and exit code 2."""
    from nbmodels.errors import DataError

    try:
        try:
            yield
        except DataError as error:
            words = " ".join(str(error).split())
            name, colon, rest = words.partition(":")
            if colon and name in _OPTIONS:
                words = f"--{name}:{rest}"
            raise InputError(words) from error
    except InputError as error:
        typer.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error


@contextlib.contextmanager
def _stages(console: Console) -> Iterator[Callable[[str], None]]:
    """A line for each stage of the work, with its time."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description}"))
    progress = Progress(*columns, TimeElapsedColumn(), console=console)
    current: list[Any] = []

    def done() -> None:
        for task in current:
            progress.update(task, total=1, completed=1)
        current.clear()

    def stage(words: str) -> None:
        done()
        progress.start()
        current.append(progress.add_task(words, total=None))

    try:
        yield stage
        done()
    finally:
        if progress.live.is_started:  # otherwise it would leave an empty line
            progress.stop()


@app.command()
def clean(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Table: .csv, .tsv or .parquet.")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the given labels.")],
    text: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of texts to learn from.")
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...", help="Columns to learn from. [default: all that can serve]"
        ),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of true labels, only to compare with."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Corrected table. [default: FILE's name with -corrected, here]"
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also write the noise matrix (table, heat map; by confident learning) and the "
            "posterior.",
        ),
    ] = None,
    noise: Annotated[
        NoiseForm | None,
        typer.Option(help="Form of the noise matrix. [default: chosen by held-out labels]"),
    ] = None,
    feedback: Annotated[
        Feedback | None,
        typer.Option(
            help="Let features learn from corrected labels as in the papers (full), or from the "
            "given ones alone (cut). [default: chosen by held-out labels]"
        ),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option(help="Power of the features' evidence in a joint model. [default: learned]"),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Smoothing. [default: chosen by held-out labels]")
    ] = None,
    probabilities: Annotated[
        bool | None,
        typer.Option(
            "--probabilities/--no-probabilities",
            help="A column for each class. [default: up to 10 classes]",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace outputs.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
) -> None:
    """Find and mend wrong labels in a table of yours.

    Rows without a label get one, empty cells are missing, and the input stays as it is: the
    corrected table holds all its rows and columns, then [bold]suggested_label[/],
    [bold]p_label_wrong[/], [bold]p_suggested[/] and, for few classes, their probabilities.
    """
    with _complaints():
        from nbmodels.cli.files import SUFFIXES, check_output, read_table, write_table

        target = out if out is not None else Path(f"{file.stem}-corrected{file.suffix}")
        if out is not None and target.suffix.lower() not in SUFFIXES:
            raise InputError(f"--out: {target} is neither .csv, .tsv nor .parquet")
        table = read_table(file)
        if target.exists() and target.samefile(file):
            raise InputError(f"--out: {target} is the input; choose another name")
        check_output(target, overwrite=overwrite)
        if report is not None:
            check_output(report, overwrite=overwrite, name="--report")
            _check_folder(report, "--report")
        names = None if features is None else [n.strip() for n in features.split(",") if n.strip()]

        from rich.console import Console

        from nbmodels.cli import clean as job
        from nbmodels.cli import report as reports

        console = Console()
        console.print(f"[bold]{file.name}[/]: {len(table.frame)} rows", highlight=False)
        with _stages(Console(stderr=True)) as stage:
            cleaned = job.clean(
                table.frame,
                label,
                text=text,
                features=names,
                truth=truth,
                noise=None if noise is None else noise.value,
                feedback=None if feedback is None else feedback.value,
                weight=weight,
                alpha=alpha,
                probabilities=probabilities,
                random_state=seed,
                stage=stage,
            )
            with _writing(target):
                write_table(table, cleaned.added, target)
            if report is not None and cleaned.noise is not None:
                with _writing(report):
                    _write_report(report, cleaned.noise, cleaned.posterior, second=cleaned.second)
        console.print()
        reports.show(console, cleaned, first_row=1)
        added = len(cleaned.added.columns)
        console.print(
            f"Wrote [bold]{target}[/]: {len(table.frame)} rows, {len(table.frame.columns)} columns "
            f"as they were and {added} new ones",
            highlight=False,
        )
        if report is not None:
            files = (*_REPORT, *(() if cleaned.second is None else (_SECOND,)))
            console.print(f"Wrote [bold]{report}[/]: {', '.join(files)}", highlight=False)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the results go.")] = Path(
        "nbmodels-demo"
    ),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the results.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
) -> None:
    """Show all of it on handwritten digits with planted errors; takes about a minute."""
    with _complaints():
        from nbmodels.cli.files import check_output

        check_output(out, overwrite=overwrite)
        _check_folder(out, "--out")

        from rich.console import Console

        from nbmodels.cli import report as reports
        from nbmodels.cli.clean import Scores
        from nbmodels.datasets import noisy_digits

        console = Console()
        data = noisy_digits(seed)
        wrong = int((data.given != data.truth).sum())
        console.print(
            f"[bold]Handwritten digits[/]: {len(data.x)} training images, {wrong} of their labels "
            f"made wrong (1 as 7, 3 as 8, 9 as 4, ...); {len(data.x_test)} clean test images",
            highlight=False,
        )
        with _stages(Console(stderr=True)) as stage:
            result = _demo(data, seed, stage)
            with _writing(out):
                _write_report(out, result.noise, result.posterior, result.corrected)
        given, suggested = data.names[data.given], result.corrected["suggested"].to_numpy()
        p_wrong = result.corrected["p_wrong"].to_numpy()
        scores = Scores.of(given, suggested, p_wrong, data.names[data.truth])
        console.print()
        console.print(reports.recovered_table(data.matrix, result.noise))
        console.print()
        true = data.names[data.truth]
        rows = range(len(given))
        console.print(reports.doubtful_table(rows, given, suggested, p_wrong, truth=true, count=5))
        console.print()
        console.print(reports.scores_table(scores, "Planted errors"))
        console.print()
        console.print(
            "Accuracy on clean test images, trained on the wrong labels: "
            f"{result.before:.3f} believing them, [bold]{result.after:.3f}[/] modelling the noise",
            highlight=False,
        )
        console.print(result.check, highlight=False)
        for doubt in result.doubts:
            console.print(f"[yellow]Caution:[/] {doubt}", highlight=False)
        files = ", ".join(("corrected.csv", *_REPORT))
        console.print(f"Wrote [bold]{out}[/]: {files}", highlight=False)


# The demonstration --------------------------------------------------------------------------------

#: Files of a report, beside the corrected table.
_REPORT = ("noise_matrix.csv", "noise_matrix.png", "posterior.nc")

#: The noise matrix by confident learning, where there are rows enough.
_SECOND = "second_opinion.csv"


@dataclass(frozen=True)
class _Demo:
    """What the demonstration found."""

    noise: Noise
    posterior: Any
    corrected: DataFrame
    before: float
    after: float
    check: str
    doubts: list[str]


def _demo(data: NoisyDigits, seed: int, stage: Callable[[str], None]) -> _Demo:
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    from nbmodels import NoisyGaussianNB
    from nbmodels.cli.clean import Noise, collected

    names = data.names
    stage("fitting the model")
    # 20 directions hold nine tenths of the variance, and their covariances suit the Gaussian
    squeeze = PCA(20, random_state=seed).fit(data.x)
    x, x_test = squeeze.transform(data.x), squeeze.transform(data.x_test)
    model = NoisyGaussianNB(covariance="full", random_state=seed, progress=False)
    model.fit(x, names[data.given])
    plain = QuadraticDiscriminantAnalysis().fit(x, names[data.given])
    stage("drawing from the posterior (Gibbs)")
    doubts: list[str] = []
    with collected(doubts):
        posterior = model.posterior(
            "gibbs", draws=160, warmup=800, thin=10, chains=2, progress=False
        )
    stage("cross-checking with NUTS on two digits")
    check = _cross_check(data, seed)
    corrected = model.corrected_labels()
    corrected.insert(3, "truth", names[data.truth])
    resp = model.label_posterior_
    for k, name in enumerate(names):
        corrected[f"p_{name}"] = resp[:, k].round(6)
    test = names[data.y_test]
    before, after = plain.score(x_test, test), model.score(x_test, test)
    return _Demo(Noise.of(posterior), posterior, corrected, before, after, check, doubts)


def _cross_check(data: NoisyDigits, seed: int) -> str:
    """Gibbs and NUTS on one small problem; the second reads the model's NumPyro program."""
    import numpy as np
    from sklearn.decomposition import PCA

    from nbmodels import NoisyGaussianNB
    from nbmodels.cli.clean import Noise

    digits = [1, 7]
    rows = np.flatnonzero(np.isin(data.truth, digits) & np.isin(data.given, digits))
    x = PCA(2, random_state=seed).fit_transform(data.x[rows])
    small = NoisyGaussianNB.published(covariance="full", random_state=seed, progress=False)
    small.fit(x, data.names[data.given[rows]])
    options: dict[str, Any] = {"chains": 2, "progress": False}
    gibbs = Noise.of(small.posterior("gibbs", draws=500, warmup=100, **options))
    nuts = Noise.of(small.posterior("nuts", draws=200, warmup=200, **options))
    gap = np.abs(gibbs.mean - nuts.mean).max()
    ends = max(np.abs(gibbs.low - nuts.low).max(), np.abs(gibbs.high - nuts.high).max())
    return (
        f"Gibbs against NUTS on {len(rows)} images of {' and '.join(data.names[digits])}: "
        f"noise matrices differ by at most {gap:.3f}, the ends of their intervals by {ends:.3f}"
    )


# Writing ------------------------------------------------------------------------------------------


def _check_folder(folder: Path, name: str) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{name}: {folder} is a file; expected a folder")


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """A full disk, or a directory that went away, is bad luck and no traceback."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _write_report(
    folder: Path,
    noise: Noise,
    posterior: Any,
    corrected: DataFrame | None = None,
    second: SecondOpinion | None = None,
) -> None:
    """Write all files of a report, or none: they are made elsewhere and moved in at the end."""
    from nbmodels.posterior.plots import noise_heat_map

    parent = folder.absolute().parent
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{folder.name}-") as name:
        made = Path(name) / "report"
        made.mkdir()
        figure, cells = noise_heat_map(noise.mean, noise.low, noise.high, noise.names)
        cells.to_csv(made / "noise_matrix.csv", index=False, float_format="%.6f")
        figure.savefig(made / "noise_matrix.png", dpi=150, bbox_inches="tight")
        posterior.to_netcdf(made / "posterior.nc")
        if corrected is not None:
            corrected.to_csv(made / "corrected.csv", index=False, float_format="%.6f")
        if second is not None:
            second.theirs.to_csv(made / _SECOND, float_format="%.6f")
        if not folder.exists():
            made.rename(folder)
            return
        for one in made.iterdir():
            one.replace(folder / one.name)
