"""Progress bars of fits: one place that decides whether and when they appear."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tqdm.auto import tqdm

#: Seconds after which a bar appears by itself.
_DELAY = 3.0

#: Called with the number of iterations and the value that they improve.
Report = Callable[[int, float], None]


@dataclass(frozen=True)
class Progress:
    """Whether progress is shown.

    Attributes:
        shown: True for bars from the start, False for none, None for bars after three seconds.
    """

    shown: bool | None = None

    def bar(self, label: str, total: int | None = None, unit: str = "step") -> tqdm:
        """A bar that counts ``total`` units of work."""
        return tqdm(
            desc=label,
            total=total,
            unit=unit,
            delay=0.0 if self.shown else _DELAY,
            disable=self.shown is False,
            leave=False,
        )

    @contextlib.contextmanager
    def iterations(self, quantity: str = "objective") -> Iterator[Report | None]:
        """A bar that follows an iteration; None where nothing is shown.

        Args:
            quantity: name of the value that is reported.
        """
        with self.bar("fitting") as bar:

            def report(n_iter: int, value: float) -> None:
                bar.n = n_iter
                bar.set_postfix_str(f"{quantity} {value:.6g}", refresh=False)
                bar.update(0)

            yield None if self.shown is False else report
