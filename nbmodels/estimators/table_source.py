"""A table as one source of several: how its rows are packed, and what it learns beside others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from nbmodels.channels import ExternalEvidence
from nbmodels.data.features import check_columns
from nbmodels.data.labels import Classes
from nbmodels.estimators.options import CrossFit, Joint
from nbmodels.estimators.sources import Items, LearnedSource, Part
from nbmodels.fitting.beliefs import Known
from nbmodels.fitting.builder import Columns
from nbmodels.fitting.options import is_auto
from nbmodels.fitting.reference_scores import of_reference
from nbmodels.fitting.table_evidence import TableEvidence

if TYPE_CHECKING:
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
        probs = self.estimator._by_features(self.found.fitted, values)
        return {EVIDENCE: ExternalEvidence.pack(self.found.of_new(probs))}


@dataclass(frozen=True)
class CrossFitted:
    """A table beside other sources, which learns from what is known of its items.

    Attributes:
        estimator: of the table.
        rows: its rows, as the estimator reads them.
        parameters: of the estimator.
    """

    estimator: TableClassifier
    rows: Any
    parameters: Mapping[str, Any]

    def __call__(self, known: Known) -> LearnedSource:
        """The source with the evidence that it then gives; its weight is 0 where that is none.

        Raises:
            KeyboardInterrupt: a fit was interrupted.
        """
        fitted = self.estimator._beside(self.parameters, self.rows, known)
        if fitted.interrupted:
            raise KeyboardInterrupt
        found = TableEvidence(fitted)
        part = _part(found.of_items(), float(found.informative))
        return LearnedSource(
            {EVIDENCE: part},
            _EvidenceOf(self.estimator, found),
            chosen={**fitted.chosen, "training": "cross_fit"},
            noisy=fitted.noisy,
            cautions=of_reference(fitted.cautions),
        )

    def without_weight(self, items: Items) -> LearnedSource:
        """Before it has learned, where it is not to be fitted jointly."""
        return replace(no_evidence(len(items.ids), len(items.classes)), cross_fitted=self)


def learned_table(model: TableClassifier, values: Any, items: Items) -> LearnedSource:
    """Emissions of a table with their data, by block of columns, or what it learns cross-fitted.

    Args:
        model: estimator of the table.
        values: its rows.
        items: whose rows they are.
    """
    parameters = model._validate()
    training = getattr(model, "training", "auto")
    # other estimators have a training of their own, or none
    how = model._training() if "training" in model._get_param_names() else Joint()
    block = model._checked(values, reset=True, empty_rows=True)
    check_columns(block)
    crossed = CrossFitted(model, block, parameters)
    if isinstance(how, CrossFit):
        return crossed.without_weight(items)
    build = model._builder(parameters, block, items.weights, {}, len(items.classes))
    emissions = {n: c for n, c in build({}).model.items() if n in build.features}
    parts, coded = {}, build.columns({})
    for c in coded:
        here = block.columns(c.where)
        data = c.encoder.pack(emissions[c.name], here, len(items.ids))
        parts[c.name] = Part(emissions[c.name], data, c.encoder.log_jacobian(here))
    return LearnedSource(
        parts,
        RowsOf(model, emissions, coded),
        {c.name: [block.names[j] for j in c.where] for c in coded},
        {c.name: c.encoder.units for c in coded},
        coords={c.name: c.encoder.coords() for c in coded},
        open_power=is_auto(training) or is_auto(parameters.get("weight")),
        cross_fitted=crossed if how is None else None,
    )


def no_evidence(n_items: int, n_classes: int) -> LearnedSource:
    """A table that is cross-fitted before it has learned: its evidence has no weight."""
    return LearnedSource({EVIDENCE: _part(np.zeros((n_items, n_classes)), 0.0)}, _nothing)


def _part(logs: Float[np.ndarray, "n k"], weight: float) -> Part:
    component = replace(ExternalEvidence.of(logs.shape[1]), weight=weight)
    return Part(component, ExternalEvidence.pack(logs))


def _nothing(values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
    """New rows of a table that has not learned."""
    return {EVIDENCE: ExternalEvidence.pack(np.zeros((len(items), len(classes))))}
