"""A table as one source of several: how its rows are packed, and what it learns beside others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbmodels.channels import ExternalEvidence
from nbmodels.data.features import Block
from nbmodels.data.labels import Classes
from nbmodels.estimators.sources import LearnedSource, Part
from nbmodels.fitting.beliefs import Known
from nbmodels.fitting.builder import Columns
from nbmodels.fitting.table_evidence import TableEvidence

if TYPE_CHECKING:
    import numpy as np

    from nbmodels.estimators.table import TableClassifier

#: Name of the part of a table that is cross-fitted.
EVIDENCE = "evidence"


@dataclass(frozen=True)
class RowsOf:
    """Packs new rows in the coding that a source learned, by block of columns."""

    estimator: TableClassifier
    emissions: Mapping[str, Any]
    coded: Sequence[Columns]

    def __call__(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        block = self.estimator._checked(values, reset=False)
        return {
            c.name: c.encoder.pack(self.emissions[c.name], block.columns(c.where), len(items))
            for c in self.coded
        }


@dataclass(frozen=True)
class _EvidenceOf:
    """Packs the log-likelihoods of new rows by the features of a fit."""

    estimator: TableClassifier
    found: TableEvidence

    def __call__(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        block = self.estimator._checked(values, reset=False)
        return {EVIDENCE: ExternalEvidence.pack(self.found.of_new(block))}


@dataclass(frozen=True)
class CrossFitted:
    """A table beside other sources, which learns from what is known of its items.

    Attributes:
        estimator: of the table.
        block: its columns.
        parameters: of the estimator.
    """

    estimator: TableClassifier
    block: Block
    parameters: Mapping[str, Any]

    def __call__(self, known: Known) -> LearnedSource:
        """The source with the evidence that it then gives; its weight is 0 where that is none.

        Raises:
            KeyboardInterrupt: a fit was interrupted.
        """
        fitted = self.estimator._beside(self.parameters, self.block, known)
        if fitted.interrupted:
            raise KeyboardInterrupt
        found = TableEvidence(fitted)
        component = replace(ExternalEvidence.of(len(known.names)), weight=float(found.heard))
        part = Part(component, ExternalEvidence.pack(found.of_items()))
        chosen = {**fitted.chosen, "training": "cross_fit"}
        encode = _EvidenceOf(self.estimator, found)
        return LearnedSource({EVIDENCE: part}, encode, chosen=chosen)
