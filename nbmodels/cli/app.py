"""Commands: ``nbmodels demo``, ``nbmodels clean`` and ``nbmodels audit``.

Whatever is heavy is imported inside the commands, so that ``nbmodels --help`` is quick.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nbmodels import __version__
from nbmodels.cli import options
from nbmodels.cli.audit import audit_app
from nbmodels.cli.checked import files_of_checks, true_classes
from nbmodels.cli.console import InputError, input_errors, report_blanks, stages, writing
from nbmodels.errors import counted

app = typer.Typer(
    help="Find and correct wrong labels, with probabilities and credible intervals.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    # a traceback should not show what the table holds
    pretty_exceptions_show_locals=False,
)
app.add_typer(audit_app, name="audit")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"nbmodels {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


class NoiseForm(StrEnum):
    """Forms of the noise matrix."""

    full = "full"
    symmetric = "symmetric"
    pooled = "pooled"


class Training(StrEnum):
    """Joint fitting of features and noise, or cross-fitting."""

    joint = "joint"
    cross_fit = "cross_fit"


@app.command()
def clean(
    file: options.TableFile,
    label: options.Label,
    task: options.Task = None,
    worker: options.Worker = None,
    grades: options.Grades = None,
    text: options.Text = None,
    features: options.Features = None,
    groups: options.Groups = None,
    truth: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of true labels, only to compare with."),
    ] = None,
    checked: options.Checked = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Corrected table.",
            show_default="FILE's name with -corrected, here",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also write the noise matrix (table, heat map; by confident learning) and the "
            "posterior; of votes the annotators, their noise matrices, that of all of them, and "
            "the posterior.",
        ),
    ] = None,
    estimator: options.Estimator = options.EstimatorName.naive_bayes,
    noise: Annotated[
        NoiseForm | None,
        typer.Option(help="Form of the noise matrix.", show_default="pooled"),
    ] = None,
    training: Annotated[
        Training | None,
        typer.Option(
            help="Fit features and noise jointly as in the papers (joint), or features to the "
            "given labels of other rows alone (cross_fit).",
            show_default="jointly where that model passes its checks, else cross-fitting with "
            "self-training rounds",
        ),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option(
            help="Power of the features' likelihood in a joint model.", show_default="learned"
        ),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Smoothing.", show_default="chosen by held-out labels")
    ] = None,
    probabilities: Annotated[
        bool | None,
        typer.Option(
            "--probabilities/--no-probabilities",
            help="A column for each class.",
            show_default="up to 10 classes",
        ),
    ] = None,
    draws: options.Draws = None,
    encoding: options.Encoding = None,
    overwrite: options.Overwrite = False,
    seed: options.Seed = 0,
) -> None:
    """Find and correct wrong labels in a table.

    Rows without a label get one, empty cells are missing, and the input is not
    changed: the corrected table holds all its rows and columns, then
    [bold]suggested_label[/], [bold]p_label_wrong[/], [bold]p_suggested[/],
    [bold]check_rank[/] (1 for the label to check first) and, for few classes,
    their probabilities.

    With [bold]--task[/] and [bold]--worker[/] each row is a vote of one of several annotators:
    the corrected table has a row an item, and how far each annotator can be
    trusted is printed.
    """
    with input_errors():
        from nbmodels.cli import files

        of_votes = task is not None or worker is not None
        if of_votes:
            from nbmodels.cli.votes_table import check_roles

            unused = {
                "--text": text,
                "--features": features,
                "--groups": groups,
                "--noise": noise,
                "--training": training,
                "--weight": weight,
                "--alpha": alpha,
                "--estimator": None if estimator == options.EstimatorName.naive_bayes else 1,
            }
            check_roles(task, worker, unused)
        elif grades is not None:
            raise InputError("--grades: for a table of votes (--task, --worker)")

        target = out if out is not None else Path(f"{file.stem}-corrected{file.suffix}")
        if out is not None and target.suffix.lower() not in files.SUFFIXES:
            raise InputError(f"--out: {target} is neither .csv, .tsv nor .parquet")
        table = files.read_table(file, encoding)
        inputs = {"the input": file, **files_of_checks(checked)}
        files.check_output(target, overwrite=overwrite, others=inputs)
        if report is not None:
            others = inputs | {"the corrected table": target}
            files.check_output(
                report, overwrite=overwrite, name="--report", folder=True, others=others
            )

        from nbmodels.cli import clean as job
        from nbmodels.cli import report as reports
        from nbmodels.cli.wording import bold, screen

        console = screen()
        console.print(f"{bold(file.name)}: {counted(len(table.frame), 'row')}", highlight=False)
        table, blanks = table.with_labels(label, truth)
        report_blanks(console, blanks)
        sizes = {} if draws is None else {"draws": draws}
        if task is not None and worker is not None:
            from nbmodels.cli.votes_table import VotesTable, clean_items

            votes = VotesTable.of(table, label, task, worker, truth, encoding)
            clean_items(
                console,
                votes,
                target,
                report,
                checked=checked,
                grades=options.column_names(grades),
                probabilities=probabilities,
                seed=seed,
                **sizes,
            )
            return
        with stages(screen(stderr=True)) as stage:
            cleaned = job.clean(
                table.frame,
                label,
                text=text,
                features=options.column_names(features),
                groups=groups,
                truth=truth,
                checked=true_classes(checked or (), table, label, encoding),
                estimator=estimator.value,
                noise=None if noise is None else noise.value,
                training=None if training is None else training.value,
                weight=weight,
                alpha=alpha,
                probabilities=probabilities,
                keep="parameters" if report is None else "small",
                **sizes,
                random_state=seed,
                stage=stage,
            )
            with writing(target):
                files.write_table(table, cleaned.added, target)
            if report is not None and cleaned.noise is not None:
                with writing(report):
                    files.write_report(
                        report,
                        cleaned.noise,
                        cleaned.posterior,
                        second=cleaned.second,
                        dialect=table.dialect_of(report / files.SECOND_OPINION),
                    )
        console.print()
        reports.show(console, cleaned, first_row=1)
        added = len(cleaned.added.columns)
        console.print(
            f"Wrote {bold(target)}: {counted(len(table.frame), 'row')}, "
            f"{counted(len(table.frame.columns), 'column as it was', 'columns as they were')} and "
            f"{counted(added, 'new one')}",
            highlight=False,
        )
        if report is not None:
            second = () if cleaned.second is None else (files.SECOND_OPINION,)
            written = ", ".join((*files.REPORT, *second))
            console.print(f"Wrote {bold(report)}: {written}", highlight=False)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the results go.")] = Path(
        "nbmodels-demo"
    ),
    overwrite: options.Overwrite = False,
    seed: options.Seed = 0,
) -> None:
    """Demonstrate the method on handwritten digits with planted errors, in about a minute."""
    with input_errors():
        from nbmodels.cli.files import REPORT, check_output, write_report

        check_output(out, overwrite=overwrite, folder=True)

        from nbmodels.cli import demo as demonstration
        from nbmodels.cli.wording import bold, screen
        from nbmodels.datasets import noisy_digits

        console = screen()
        data = noisy_digits(seed)
        demonstration.introduce(console, data)
        with stages(screen(stderr=True)) as stage:
            result = demonstration.demonstrate(data, seed, stage)
            with writing(out):
                write_report(out, result.noise, result.posterior, corrected=result.corrected)
        demonstration.show(console, data, result)
        files = ", ".join(("corrected.csv", *REPORT))
        console.print(f"Wrote {bold(out)}: {files}", highlight=False)
