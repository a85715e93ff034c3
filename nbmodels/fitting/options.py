"""How models are fitted: the rule, the stopping criteria, and the kind of updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jax import Array

from inference import Status
from nbmodels.core.families import Rule
from nbmodels.core.model import Data, Model
from nbmodels.fitting.collapsed_updates import Edges, fit_collapsed
from nbmodels.fitting.em import Fit, fit_many
from nbmodels.fitting.progress import Progress, Report, Task

#: Rows from which on fits begin at their neighbour's solution. On fewer the noise may be hardly
#: identified, and where a fit comes to rest hangs on where it began.
MANY_ROWS = 4096

#: Rows up to which a model's own held-out labels and the checks of its features miss much: its
#: changes are held to other classifiers, too. Of 600 and more these cost as many right changes as
#: they save wrong ones in simulated worlds.
FEW_ROWS = 500

#: Seed of held-out labels and of the sample of a large table. As in scikit-learn they are one draw,
#: whatever the seed of the fit: of small tables another one may select another model.
HELD_OUT_SEED = 209_652_396


def is_auto(value: Any) -> bool:
    """Whether a parameter is to be selected."""
    return isinstance(value, str) and value == "auto"


@dataclass(frozen=True)
class FitOptions:
    """Options that all fits of one estimator share.

    Attributes:
        key: JAX random key of restarts.
        seed: the whole number that the key came from.
        rule: ``"ml"``, ``"map"`` or ``"vb"``.
        n_restarts: random starts beside the one from the labels.
        max_iter: largest number of accepted points of each start.
        tol: gain in nats per unit of row weight below which a fit has converged.
        accelerate: try monotone SQUAREM extrapolations.
        stride: steps to each look at the objective, where there is no acceleration.
        graphs: edges by component, of the graphs whose updates are collapsed.
        progress: whether bars are shown.
        tables: whether log-likelihoods by component are kept, see
            :func:`nbmodels.fitting.fit.log_likelihoods_of`.
    """

    key: Array
    seed: int
    rule: Rule = "map"
    n_restarts: int = 0
    max_iter: int = 500
    tol: float = 1e-6
    accelerate: bool = True
    stride: int = 1
    graphs: Mapping[str, Edges] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    tables: bool = False

    def without_restarts(self) -> FitOptions:
        """For fits that go on from a point."""
        return replace(self, n_restarts=0)

    def fit(
        self, model: Model, data: Data, *, start: Any = None, report: Report | None = None
    ) -> Fit:
        """One fit; ``start`` gives parameters to begin from instead of the labels."""
        starts = None if start is None else [start]
        (fitted,) = self.fit_all([model], [data], starts=starts, report=report)
        return fitted

    def fit_all(
        self,
        models: Sequence[Model],
        data: Sequence[Data],
        *,
        starts: Sequence[Any] | None = None,
        report: Report | None = None,
    ) -> list[Fit]:
        """Fits of several models, each to its data, by one program where shapes agree."""
        if self.graphs:
            begun = [None] * len(models) if starts is None else starts
            triples = zip(models, data, begun, strict=True)
            return [self._with_graphs(*one, report=report) for one in triples]
        return fit_many(models, data, starts=starts, report=report, **self._plain())

    def compared(self, models: Sequence[Model], data: Sequence[Data], bar: Task) -> Iterator[Fit]:
        """Fits of several candidates, counted by a progress bar.

        Raises:
            KeyboardInterrupt: a fit was interrupted; what it reached compares with nothing.
        """
        if self.graphs:
            for model, own in zip(models, data, strict=True):
                yield finished(self._with_graphs(model, own, None))
                bar.update()
            return

        def report(n_iter: int, _: float) -> None:
            bar.note = f"step {n_iter}"

        yield from map(finished, fit_many(models, data, report=report, **self._plain()))
        bar.update(len(models))

    def _with_graphs(
        self, model: Model, data: Data, start: Any, report: Report | None = None
    ) -> Fit:
        """Collapsed updates, unless no graph has a weight."""
        edges = {name: one for name, one in self.graphs.items() if model[name].weight != 0}
        if not edges:
            starts = None if start is None else [start]
            (fitted,) = fit_many([model], [data], starts=starts, report=report, **self._plain())
            return fitted
        return fit_collapsed(
            model,
            data,
            edges=edges,
            rule=self.rule,
            max_iter=self.max_iter,
            report=report,
            start=start,
        )

    def _plain(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "key": self.key,
            "n_restarts": self.n_restarts,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "accelerate": self.accelerate,
            "stride": self.stride,
            "tables": self.tables,
        }


def finished(fitted: Fit) -> Fit:
    """The same fit.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    if fitted.status == Status.INTERRUPTED:
        raise KeyboardInterrupt
    return fitted
