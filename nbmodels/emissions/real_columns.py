"""Standardisation of real features, for the normal and Student's t emissions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from inference.arrays import floating
from nbmodels.core.registry import register_family
from nbmodels.core.roles import Emission, FeatureColumns
from nbmodels.data.features import Block
from nbmodels.data.validation import pad_rows, row_blocks
from nbmodels.emissions.columns import floats
from nbmodels.emissions.gaussian import DiagonalGaussian
from nbmodels.emissions.gaussian_full import FullGaussian
from nbmodels.emissions.student import DiagonalStudent, FullStudent
from nbmodels.errors import DataError

#: Spread of a column's values, relative to them, up to which it is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class RealColumns(FeatureColumns):
    """Standardisation of real features, for the Gaussian and Student emissions.

    The model sees ``(x - location) / scale``: one prior and single precision then serve any unit.

    Attributes:
        location: ``(d,)`` weighted means of the training data.
        scale: ``(d,)`` weighted standard deviations, 1 for constant columns.
        covariance: ``"diag"``, ``"full"`` or ``"tied"``.
        dof: degrees of freedom of a t distribution, None for a normal one.

    Examples:
        Lengths in metres and weights in grams, standardised for the emission; means that it finds
        are put back into these units:

        >>> import numpy as np
        >>> from nbmodels.data.features import Block
        >>> from nbmodels.emissions import RealColumns
        >>> x = np.array([[0.001, 10.0], [0.003, 10.0], [0.005, 40.0], [0.007, 60.0]])
        >>> block = Block(x, None, ("length", "weight"))
        >>> coding = RealColumns.fit(block, np.ones(4), covariance="full")
        >>> emission = coding.component(n_classes=2)
        >>> print(type(emission).__name__)
        FullGaussian
        >>> print(np.asarray(coding.pack(emission, block, 4).x.to_dense()).round(1))
        [[-1.3 -0.9]
         [-0.4 -0.9]
         [ 0.4  0.5]
         [ 1.3  1.4]]
        >>> print(coding.units({"mu": np.array([0.0, 1.0])})["mu"].round(3).tolist())
        [0.004, 51.213]
    """

    settings: ClassVar[tuple[str, ...]] = ("covariance", "dof")
    scaled: ClassVar[bool] = True

    location: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    covariance: str
    dof: float | None = None

    @classmethod
    def modelled(cls, block: Block, weights: np.ndarray) -> Bool[np.ndarray, " d"]:
        """Columns that vary; all where none does.

        A constant column would have the prior's variance in each class, less in a large one.
        """
        x = floats(block)
        if block.missing is None and weights.all():
            low, high = x.min(0), x.max(0)
        else:
            seen = np.broadcast_to(weights[:, None] > 0, x.shape)
            seen = seen if block.missing is None else seen & ~block.missing
            low, high = np.where(seen, x, np.inf).min(0), np.where(seen, x, -np.inf).max(0)
        varies = high / 2 - low / 2 > _ROUNDING * np.abs(low / 2 + high / 2)
        return varies if varies.any() else np.ones_like(varies)

    @classmethod
    def fit(
        cls,
        block: Block,
        weights: np.ndarray,
        covariance: str = "diag",
        dof: float | None = None,
    ) -> RealColumns:
        x = floats(block)

        def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            """Cells and their weights, of blocks of rows."""
            for rows in row_blocks(*x.shape):
                if block.missing is None:
                    # sums are then in one order, however the table lies in memory
                    yield np.ascontiguousarray(x[rows]), weights[rows, None]
                else:
                    seen = 1.0 - block.missing[rows]
                    yield np.where(seen > 0, x[rows], 0), weights[rows, None] * seen

        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            sums = [(mass.sum(0), (mass * cells).sum(0)) for cells, mass in parts()]
            count, total = (sum(one) for one in zip(*sums, strict=True))
            count = np.maximum(count, np.finfo(float).tiny)
            location = total / count
            square, widest = 0.0, np.zeros(x.shape[1])
            for cells, mass in parts():
                gap = cells - location
                square = square + (mass * np.square(gap)).sum(0)
                widest = np.maximum(widest, np.max(np.where(mass > 0, np.abs(gap), 0), axis=0))
            scale = np.sqrt(square / count)
        # a column that varies by less than its values' rounding is constant
        flat = widest <= _ROUNDING * np.abs(location)
        fair = (flat & np.isfinite(location)) | ((scale > 1e-150) & (scale < 1e150))
        bad = np.flatnonzero(~fair)
        if len(bad):
            raise DataError(
                f"X: column {block.names[bad[0]]!r} varies by {widest[bad[0]]:.3g}, whose square "
                "is beyond floating point; rescale it"
            )
        return cls(location, np.where(flat, 1.0, scale), covariance, dof)

    def component(self, n_classes: int) -> Emission:
        d = len(self.location)
        if self.covariance == "diag":
            if self.dof is None:
                return DiagonalGaussian.of(d, n_classes)
            return DiagonalStudent.of(d, n_classes, dof=self.dof)
        tied = self.covariance == "tied"
        if self.dof is None:
            return FullGaussian.of(d, n_classes, tied=tied)
        return FullStudent.of(d, n_classes, tied=tied, dof=self.dof)

    def pack(self, component: Any, block: Block, length: int) -> Any:
        x, missing = floats(block), block.missing
        # at once as it is handed over: each copy of a large table takes as long as the arithmetic
        out = np.zeros((length, x.shape[1]), floating())
        inside = out[: len(x)]
        for rows in row_blocks(*x.shape):
            inside[rows] = (x[rows] - self.location) / self.scale
        return component.pack(out, None if missing is None else pad_rows(missing, length))

    def log_jacobian(self, block: Block) -> Float[np.ndarray, " n"]:
        shift = np.broadcast_to(-np.log(self.scale), block.x.shape)
        return shift.sum(1) if block.missing is None else (shift * ~block.missing).sum(1)

    def units(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        out = {"mu": self.location + self.scale * np.asarray(values["mu"], float)}
        if "variance" in values:
            out["variance"] = np.asarray(values["variance"], float) * self.scale**2
        if "covariance" in values:
            square = np.outer(self.scale, self.scale)
            out["covariance"] = np.asarray(values["covariance"], float) * square
        return out


register_family("gaussian", RealColumns)
