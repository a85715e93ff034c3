"""Plan of an audit: rows drawn to be checked, and how narrow the answer will be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from nbmodels.audit.allocation import stratify
from nbmodels.audit.intervals import Sample, jeffreys
from nbmodels.data.validation import plain
from nbmodels.errors import DataError, counted

#: Version of the file format.
_FORMAT = 1


@dataclass(frozen=True)
class AuditPlan:
    """Rows to be checked, in the order in which to check them.

    Rows of every stratum are in random order, spread evenly over the plan: whoever stops early has
    a smaller sample of the same kind.

    Attributes:
        rows: frame of the rows to check with columns ``position`` (from 0, among all rows of the
            fit), ``row`` (its id, as in ``corrected_labels()``), ``given``, ``suggested``,
            ``p_wrong``, ``p_suggested``, ``stratum``, ``inclusion`` (its inclusion probability) and
            ``same_id`` (rows of the fit that have its id).
        strata: frame with a row a stratum, by rising P(wrong): ``rows``, ``checks``, ``lowest`` and
            ``highest`` P(wrong), and the means over all its rows of ``p_wrong`` and
            ``p_suggested``.
        classes: ``(K,)`` names of the classes.
        n_items: rows of the fit, those without a label or with a trusted one included.
        share: share of wrong labels that the margins suppose.
        seed: of the draw and of the intervals.
        informative: whether the features predict the labels; if not, the model expects no share of
            wrong ones.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import AuditPlan, NoisyGaussianNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = rng.normal(8 * truth[:, None], size=(200, 2))
        >>> y = names[corrupt(truth, uniform_noise(2, 0.2), rng)]
        >>> plan = NoisyGaussianNB(training="joint").fit(X, y).audit_plan(40, random_state=0)
        >>> print(plan.sentence)
        Check 40 of 200 labels. If 21.5% of the labels are wrong, the share of wrong labels will
        be known to about ±1.6 points (90 % interval) if P(wrong) is right, and to ±9.4 points
        if it says nothing.
        >>> len(AuditPlan.from_json(plan.to_json()))  # as text, for a file
        40
    """

    rows: pd.DataFrame
    strata: pd.DataFrame
    classes: np.ndarray
    n_items: int
    share: float
    seed: int
    informative: bool = True

    def __len__(self) -> int:
        """Number of rows to check."""
        return len(self.rows)

    @property
    def population(self) -> int:
        """Rows that the answer is about: with a label and weight above 0, and not trusted."""
        return int(self.strata["rows"].sum())

    @property
    def margin(self) -> float:
        """Expected half width of the 90 % interval of the share of wrong labels, if P(wrong) holds.

        That is, if in each stratum as many labels are wrong as P(wrong) says, brought to ``share``.
        """
        return _margin(self.strata, self.share, useful=True)

    @property
    def cautious_margin(self) -> float:
        """The same half width where P(wrong) says nothing about which labels are wrong."""
        return _margin(self.strata, self.share, useful=False)

    @property
    def sentence(self) -> str:
        """What to check and how narrow the answer will be, as a sentence."""
        if not self.informative:
            return (
                f"Check {len(self)} of {self.population} labels. The features do not predict them, "
                f"so that no share of wrong ones is expected; if {self.share:.1%} are wrong, this "
                f"will be known to about ±{100 * self.cautious_margin:.1f} points (90 % interval)."
            )
        return (
            f"Check {len(self)} of {self.population} labels. If {self.share:.1%} of the labels are "
            f"wrong, the share of wrong labels will be known to about ±{100 * self.margin:.1f} "
            f"points (90 % interval) if P(wrong) is right, and to "
            f"±{100 * self.cautious_margin:.1f} points if it says nothing."
        )

    def to_json(self, path: str | Path | None = None) -> str:
        """The plan as JSON text, written to a file where a path is given."""
        content = {
            "format": _FORMAT,
            "rows": {**_columns(self.rows), "row": [written(row) for row in self.rows["row"]]},
            "strata": _columns(self.strata),
            "classes": [plain(name) for name in self.classes],
            "n_items": self.n_items,
            "share": self.share,
            "seed": self.seed,
            "informative": self.informative,
            "dates": pd.api.types.is_datetime64_dtype(self.rows["row"]),
        }
        text = json.dumps(content, indent=1, default=str)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> AuditPlan:
        """A plan from :meth:`to_json`'s text, or from a path to it.

        Ids of rows that are no text, numbers or dates are their text; audits take both.

        Raises:
            DataError: no such file, or no plan.
        """
        try:
            text = Path(source).read_text("utf-8") if isinstance(source, Path) else source
            content = json.loads(text)
            if content["format"] != _FORMAT:
                raise DataError(f"plan: format {content['format']!r} is not known here")
            rows = pd.DataFrame(content["rows"])
            if content.get("dates"):
                rows["row"] = pd.to_datetime(rows["row"], format="ISO8601")
            return cls(
                rows,
                pd.DataFrame(content["strata"]),
                np.asarray(content["classes"]),
                int(content["n_items"]),
                float(content["share"]),
                int(content["seed"]),
                bool(content.get("informative", content.get("heard", True))),  # its former name
            )
        except OSError as error:
            raise DataError(f"plan: {source} cannot be read: {error.strerror}") from error
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError("plan: this is no audit plan written by to_json") from error


def _columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    return {str(name): [plain(v) for v in frame[name]] for name in frame}


def written(row: Any) -> Any:
    """The id of a row as it stands in a file: text and numbers, and the text of all others."""
    row = plain(row)
    if isinstance(row, tuple):  # of an index of several levels
        row = tuple(plain(part) for part in row)
    return row if isinstance(row, str | int | float) else str(row)


def _text(row: Any) -> str | None:
    """The id of a row as text; None of any null."""
    return None if pd.api.types.is_scalar(row) and pd.isna(row) else str(written(row))


def check_drawn_from(plan: AuditPlan, corrected: pd.DataFrame) -> None:
    """Refuse a plan of other rows: what is checked of them says nothing of these.

    Args:
        plan: from :func:`draw_plan`.
        corrected: a table as ``corrected_labels()`` returns it.

    Raises:
        DataError: other numbers of rows, another id at a position, or another given label.
    """
    if plan.n_items != len(corrected):
        raise DataError(
            f"plan: it is of {counted(plan.n_items, 'row')}, and the fit of {len(corrected)}; "
            "audit the fit that it was drawn from"
        )
    rows = corrected.iloc[plan.rows["position"].to_numpy(int)]
    for name, what in (("row", "row"), ("given", "label")):
        pairs = zip(plan.rows["position"], plan.rows[name], rows[name], strict=True)
        for position, then, now in pairs:
            if _text(then) != _text(now):
                raise DataError(
                    f"plan: at position {position} it has the {what} {plain(then)!r}, and the fit "
                    f"{plain(now)!r}; audit the fit that it was drawn from"
                )


def draw_plan(
    corrected: pd.DataFrame,
    classes: np.ndarray,
    n_rows: int | None = None,
    *,
    margin: float | None = None,
    share: float | None = None,
    separable: float | None = None,
    informative: bool = True,
    left_out: np.ndarray | None = None,
    seed: int = 0,
) -> AuditPlan:
    """Draw rows to be checked, stratified by P(wrong).

    Args:
        corrected: a table as ``corrected_labels()`` returns it.
        classes: ``(K,)`` names of the classes.
        n_rows: rows to check.
        margin: in the place of ``n_rows``: wanted half width of the 90 % interval of the share of
            wrong labels, such as 0.02; met even where P(wrong) says nothing, if ``share`` of the
            labels are wrong.
        share: share of wrong labels to suppose for margins; by default the mean P(wrong), or
            ``separable`` if that is more, and a half, the most cautious one, if not
            ``informative``.
        separable: share of wrong labels if classes do not overlap.
        informative: whether the features predict the labels.
        left_out: ``(N,)`` whether a row was checked before, or has no weight; it is not drawn, and
            the answer is about the other rows.
        seed: of the draw.

    Raises:
        DataError: an argument out of its range, or no label to check.
    """
    p = corrected["p_wrong"].to_numpy(float)
    known = np.isfinite(p) if left_out is None else np.isfinite(p) & ~left_out
    positions = np.flatnonzero(known)
    if not len(positions):
        kind = "a label that was not checked before" if np.isfinite(p).any() else "a single label"
        raise DataError(f"n_rows: no row has {kind}")
    p = np.clip(p[positions], 0, 1)
    assumed = _share(share, p, separable, informative=informative)
    if (n_rows is None) == (margin is None):
        raise DataError("n_rows: give the number of rows to check, or margin, and not both")
    if margin is not None:
        n = _rows_for(p, margin, assumed, seed)
    else:
        n = _whole(n_rows, len(positions))
    rng = np.random.default_rng([seed, 0])
    stratum, checks = stratify(p, n, rng)
    drawn = np.concatenate(
        [rng.choice(np.flatnonzero(stratum == h), m, replace=False) for h, m in enumerate(checks)]
    )
    # every stratum is spread evenly, from a random start: it has its share of the first rows, too
    place = np.concatenate([(np.arange(m) + rng.random()) / m for m in checks])
    drawn = drawn[np.argsort(place)]
    strata = _described(p, corrected["p_suggested"].to_numpy(float)[positions], stratum, checks)
    rows = corrected.iloc[positions[drawn]]
    ids = pd.factorize(corrected["row"], use_na_sentinel=False)[0]
    found = pd.DataFrame(
        {
            "position": positions[drawn],
            **{name: rows[name].to_numpy() for name in ("row", "given", "suggested", "p_wrong")},
            "p_suggested": rows["p_suggested"].to_numpy(float),
            "stratum": stratum[drawn],
            "inclusion": (strata["checks"] / strata["rows"]).to_numpy()[stratum[drawn]],
            "same_id": np.bincount(ids)[ids][positions[drawn]],
        }
    )
    return AuditPlan(found, strata, np.asarray(classes), len(corrected), assumed, seed, informative)


def _described(
    p: np.ndarray, p_suggested: np.ndarray, stratum: np.ndarray, checks: np.ndarray
) -> pd.DataFrame:
    grouped = pd.DataFrame({"p": p, "s": p_suggested}).groupby(stratum)
    return pd.DataFrame(
        {
            "rows": grouped.size(),
            "checks": checks,
            "lowest": grouped["p"].min(),
            "highest": grouped["p"].max(),
            "p_wrong": grouped["p"].mean(),
            "p_suggested": grouped["s"].mean(),
        }
    )


def _share(
    share: float | None, p: np.ndarray, separable: float | None, *, informative: bool
) -> float:
    """Supposed share of wrong labels.

    Raises:
        DataError: not between 0 and 1.
    """
    if share is None and not informative:
        return 0.5
    if share is None:
        # as if one more label in two were seen: a model may be sure that none is wrong
        return float(max((p.sum() + 0.5) / (len(p) + 1), separable or 0))
    if not 0 < share < 1:
        raise DataError(f"share: expected a share of wrong labels between 0 and 1, got {share}")
    return float(share)


def _whole(n_rows: Any, most: int) -> int:
    """Raises: DataError: no whole number, or more than there are labels."""
    if isinstance(n_rows, bool) or not isinstance(n_rows, int | np.integer) or n_rows < 1:
        raise DataError(f"n_rows: expected a whole number of rows, 1 or more, got {n_rows!r}")
    if n_rows > most:
        raise DataError(f"n_rows: {n_rows} rows cannot be checked, only {most} have a label")
    return int(n_rows)


def _rows_for(p: np.ndarray, margin: float, share: float, seed: int) -> int:
    """Fewest rows whose cautious margin is the wanted one, by bisection.

    Raises:
        DataError: a margin that is not between 0 and 1.
    """
    if not 0 < margin < 1:
        raise DataError(f"margin: expected a half width between 0 and 1, got {margin}")
    low, high = 0, len(p)
    while high - low > 1:
        n = (low + high) // 2
        stratum, checks = stratify(p, n, np.random.default_rng([seed, 0]))
        reached = _margin(_described(p, p, stratum, checks), share, useful=False)
        low, high = (low, n) if reached <= margin else (n, high)
    return high


def _margin(strata: pd.DataFrame, share: float, *, useful: bool) -> float:
    """Half width of Jeffreys' interval at the effective size of the stratified sample."""
    sample = Sample(np.repeat(np.arange(len(strata)), strata["checks"]), strata["rows"].to_numpy())
    rate = np.full(len(strata), share)
    if useful:
        rate = _brought_to(strata["p_wrong"].to_numpy(float), sample.share, share)
    n = sample.checks
    variance = float(np.sum(sample.share**2 * rate * (1 - rate) * (1 - n / sample.sizes) / n))
    if variance <= 0:
        return 0.0
    low, high = jeffreys(share, share * (1 - share) / variance)
    return (high - low) / 2


def _brought_to(p: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """Rates moved along their logits until their mean is ``share``."""
    logit = special.logit(np.clip(p, 1e-6, 1 - 1e-6))
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        reached = weights @ special.expit(logit + middle)
        low, high = (middle, high) if reached < share else (low, middle)
    return special.expit(logit + high)
