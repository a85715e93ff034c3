"""Normal discriminant analysis with label noise (Bootkrajang and Kaban 2011), and heavy tails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import minimize_scalar

from inference import Result, solve
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.families import Rule
from nbmodels.core.model import Data, Model
from nbmodels.data.features import Block
from nbmodels.data.labels import Classes
from nbmodels.emissions.encoders import RealEncoder
from nbmodels.errors import DataError
from nbmodels.estimators.base import Columns
from nbmodels.estimators.latent import with_inherited_parameters
from nbmodels.estimators.naive_bayes import NoisyGaussianNB

#: Where the search for the degrees of freedom begins, and its range; above it tails are normal.
_DOF = 4.0
_DOF_RANGE = (0.5, 200.0)
#: Relative accuracy of the degrees of freedom.
_DOF_ACCURACY = 0.02


@partial(jax.jit, static_argnames=("name", "rule", "max_iter"))
def _fit_at(
    dof: Array,
    model: Model,
    name: str,
    data: Data,
    params: Any,
    rule: Rule,
    tol: Array,
    max_iter: int,
) -> Result:
    # the caller names a Student component, of which a model's type says nothing
    model = {**model, name: replace(model[name], dof=dof)}  # type: ignore[call-arg]
    coordinates = models.coordinates(rule)
    return solve(
        models.step(rule),
        params,
        (model, data),
        max_steps=max_iter,
        tol=tol,
        coordinates=coordinates,
    )


def learn_dof(
    model: Model,
    name: str,
    data: Data,
    params: Any,
    *,
    rule: Rule,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> tuple[dict[str, Component], Any]:
    """The model with the degrees of freedom of highest objective, and its parameters.

    The objective is maximised over everything else at each of some twelve values, each fit
    beginning where the last one ended. There is no prior on the degrees of freedom.

    Args:
        model: components by name.
        name: of the Student component.
        data: encoded data.
        params: where to begin.
        rule: ``"ml"``, ``"map"`` or ``"vb"``.
        tol: gain in nats per unit of row weight below which a fit has converged.
        max_iter: largest number of steps of each fit.
    """
    slack = jnp.asarray(tol * float(np.sum(data.weights)))
    held = [params]

    def loss(log_dof: float) -> float:
        dof = jnp.asarray(np.exp(log_dof), slack.dtype)
        found = _fit_at(dof, model, name, data, held[0], rule, slack, max_iter)
        held[0] = found.params
        return -float(found.objective) - float(found.remainder)

    best = minimize_scalar(
        loss, bounds=np.log(_DOF_RANGE), method="bounded", options={"xatol": _DOF_ACCURACY}
    )
    component: Any = model[name]
    return {**model, name: replace(component, dof=float(np.exp(best.x)))}, held[0]


@with_inherited_parameters
class RobustNDA(NoisyGaussianNB):
    """Normal discriminant analysis whose observed labels may be mistaken (rNDA); dense X.

    The paper's ``gamma[j, k] = P(true k | observed j)`` and Zeng's ``rho[j, k] = P(observed j |
    true k)`` are two readings of one table of pairs of labels. With ``method="ml"`` the fit is the
    paper's; the priors of ``"map"`` and ``"vb"`` keep the covariance of a class with few rows, or
    fewer than columns, from becoming singular. A class is predicted by eq. (8).

    Parameters:
        covariance: ``"full"`` (each class its own covariance matrix, as in the paper), ``"tied"``
            (one for all classes) or ``"diag"``.
        dof: degrees of freedom of a multivariate Student t in the place of each normal, for heavy
            tails; None for normal classes; ``"learn"`` for those of highest objective.
    """

    attributes_doc = """
    means_: ``(K, d)`` the paper's mu.
    covariances_: ``(K, d, d)``, ``(d, d)`` where tied, ``(K, d)`` where diagonal; with ``dof`` the
        scale matrices, which are ``(dof - 2) / dof`` of the covariances.
    gamma_: ``(K, K)`` ``[observed, true]``, P(true | observed); rows sum to one.
    dof_: degrees of freedom, None for normal classes.
    """

    def __init__(
        self,
        *,
        covariance: Literal["diag", "full", "tied", "auto"] = "full",
        dof: float | Literal["learn"] | None = None,
        feedback: Literal["auto", "full", "cut"] | int = "full",
        noise: Any = "full",
        size_power: Any = 0.0,
        **shared: Any,
    ) -> None:
        super().__init__(
            covariance=covariance, feedback=feedback, noise=noise, size_power=size_power, **shared
        )
        self.dof = dof

    def _check_parameters(self) -> None:
        super()._check_parameters()
        number = isinstance(self.dof, Real) and 0 < float(self.dof) < np.inf
        if not (number or self.dof is None or (isinstance(self.dof, str) and self.dof == "learn")):
            raise DataError(
                f"dof: expected a finite number above 0, 'learn' or None, got {self.dof!r}"
            )

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        (columns,) = super()._columns(block, weights)
        assert isinstance(columns.encoder, RealEncoder)
        dof = _DOF if isinstance(self.dof, str) else self.dof
        encoder = replace(columns.encoder, dof=None if dof is None else float(dof))
        return [replace(columns, encoder=encoder)]

    def _solve(
        self,
        model: Mapping[str, Component],
        data: Data,
        classes: Classes,
        n_rows: int,
        start: Any = None,
        log_jacobian: Any = 0.0,
    ) -> None:
        if self.dof == "learn":
            if start is None:
                resp = models.initial_responsibilities(model, data)
                assert resp is not None
                start = models.start(model, resp, data, self._rule)
            model, start = learn_dof(
                model,
                "features",
                data,
                start,
                rule=self._rule,
                tol=self.tol,
                max_iter=self.max_iter,
            )
        super()._solve(model, data, classes, n_rows, start, log_jacobian)

    def _read_out(self) -> None:
        super()._read_out()
        self.means_ = self.theta_
        diagonal = self._chosen.covariance == "diag"
        self.covariances_ = self.var_ if diagonal else self.covariance_
        component: Any = self.fit_.model["features"]
        self.dof_ = None if self.dof is None else float(component.dof)

    @property
    def gamma_(self) -> np.ndarray:
        """``(K, K)`` ``[observed, true]``, P(true | observed), eq. (7); rows sum to one."""
        return self.inverse_noise_matrix_.T
