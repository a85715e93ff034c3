"""Base of all estimators: parameters, the fitted model that they hold, and read-outs of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from inference.arrays import floating, random_key
from nbmodels.core.families import Rule
from nbmodels.core.jax_settings import computing
from nbmodels.data.labels import Classes
from nbmodels.data.validation import seed_of
from nbmodels.errors import Caution, DataError, Interrupted, issue
from nbmodels.estimators.accuracy import score
from nbmodels.estimators.audits import audit, audit_plan
from nbmodels.estimators.constraints import Constraint, check_parameters
from nbmodels.estimators.draws import posterior
from nbmodels.estimators.noise_ends import noise_range
from nbmodels.estimators.notebook import listed, shown
from nbmodels.estimators.options import (
    CONFIGURED,
    CrossFit,
    Joint,
    JointGraph,
    Priors,
    Solver,
    prepare_nested,
)
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.progress import Progress

if TYPE_CHECKING:
    from nbmodels.diagnostics.findings import Verdict
    from nbmodels.diagnostics.noise_range import NoiseRange
    from nbmodels.fitting.vote_dependence import VoteDependence

#: Up to so many cells (rows x columns x classes) ``precision="auto"`` computes in float64.
_DOUBLE_UP_TO = 20_000_000


class LatentClassModel(ClassifierMixin, BaseEstimator):
    """A model with a latent true class, fitted by EM or CAVI; answers from ``fitted_``."""

    solver: Any
    priors: Any
    classes: Any
    class_prior: Any
    random_state: Any
    fitted_: FittedModel

    #: Constraints on parameters that differ from the common ones.
    constraints: ClassVar[Mapping[str, Constraint]] = {}

    #: Whether JointNB takes it as a source.
    _is_source: ClassVar[bool] = False

    #: Estimator that advice is for, by its name and what can be set there, where it is another one.
    _advised: tuple[str, frozenset[str]] | None = None

    #: Whether classes have their names even if the noise matrix's diagonal does not dominate.
    _named: ClassVar[bool] = False

    #: Why there is no other end of the noise, where there is none for any data.
    _one_end: ClassVar[str] = ""

    #: Plain steps to each look at the objective, where looking costs as much as the step.
    _stride: ClassVar[int] = 1

    # Parameters ---------------------------------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``solver__max_iter`` and the like reach into configuration objects.

        A configuration that is given by its name or by None becomes an object first:
        ``solver="vb"`` becomes ``Solver(method="vb")``. An object is replaced by a changed copy, so
        that other estimators that hold it keep theirs.

        Args:
            params: values by name.
        """
        super().set_params(**{n: value for n, value in params.items() if "__" not in n})
        nested = {n: value for n, value in params.items() if "__" in n}
        prepare_nested(self, nested, self._configured)
        return super().set_params(**nested)

    def _configured(self, name: str, value: Any) -> Any:
        """The configuration object that a parameter's value stands for."""
        return CONFIGURED[name](value) if name in CONFIGURED else value

    def _parameters(self) -> dict[str, Any]:
        """All parameters by name, those of configuration objects among them."""
        own = self.get_params(deep=False)
        parts = [self._configured(name, value) for name, value in own.items()]
        configs = [
            p for p in parts if isinstance(p, Solver | Priors | Joint | CrossFit | JointGraph)
        ]
        return {**{n: v for c in configs for n, v in c.get_params().items()}, **own}

    def _settable(self) -> frozenset[str]:
        """Names of the parameters that the advice of a verdict may set."""
        return frozenset(self._get_param_names())

    def _validate(self) -> dict[str, Any]:
        """Check all parameters against their constraints; :meth:`_parameters`."""
        parameters = self._parameters()
        check_parameters(parameters, self.constraints)
        noise = parameters.get("noise")
        if isinstance(noise, str) and noise == "pooled" and self._rule == "ml":
            raise DataError(
                "noise: method 'ml' has no prior to learn; 'pooled' takes 'map' or 'vb'"
            )
        return parameters

    @staticmethod
    def _by_class(parameters: Mapping[str, Any], classes: Classes) -> dict[str, Any]:
        """Parameters of which those that name the classes are in their order."""
        named = {n: parameters[n] for n in ("class_prior", "noise") if n in parameters}
        if isinstance(shares := named.get("class_prior"), Mapping):
            named["class_prior"] = pd.Series(dict(shares))
        return {**parameters, **{n: classes.in_order(n, value) for n, value in named.items()}}

    @property
    def _solver(self) -> Solver:
        """The solver that its parameter stands for."""
        solver: Solver = self._configured("solver", self.solver)
        return solver

    @property
    def _rule(self) -> Rule:
        """Rule of the fit."""
        return self._solver.method

    def _seed(self, state: Any = None) -> int:
        return seed_of(self.random_state if state is None else state)

    def _double(self, cells: int) -> bool:
        """Whether a fit of so many cells computes in float64."""
        precision = self._solver.precision
        if precision == "auto":
            return floating() == jnp.float64 or cells <= _DOUBLE_UP_TO
        return precision == "double"

    def _options(self) -> FitOptions:
        """Options of the fits; made where their precision holds."""
        solver, seed = self._solver, self._seed()
        return FitOptions(
            random_key(seed),
            seed,
            rule=self._rule,
            n_restarts=int(solver.n_restarts),
            max_iter=int(solver.max_iter),
            tol=float(solver.tol),
            accelerate=bool(solver.accelerate),
            stride=self._stride,
            progress=Progress(solver.progress),
        )

    def _finish(
        self, fitted: FittedModel, cautions: tuple[Caution, ...] = (), *, check: bool = True
    ) -> Self:
        """Hold a fitted model and issue its warnings.

        Args:
            fitted: the fitted model.
            cautions: warnings beside its own.
            check: warn of failed model checks, too.

        Raises:
            Interrupted: Ctrl-C ended the fit, unless the solver is to keep what was reached.
        """
        self.fitted_ = fitted
        self.classes_ = fitted.names
        self._cautions = cautions
        self._verdict: Verdict | None = None
        self._range: NoiseRange | None = None
        if fitted.interrupted and self._solver.on_interrupt == "raise":
            raise Interrupted(self)
        failed = self.verdict().cautions() if check and not fitted.interrupted else ()
        issue([*fitted.cautions, *cautions, *failed])
        return self

    # Read-outs ----------------------------------------------------------------------------------

    __dir__ = listed
    _get_fitted_attr_html = shown
    score = score
    audit_plan = audit_plan
    audit = audit
    noise_range = noise_range
    posterior = posterior

    @property
    def fit_(self) -> Fit:
        """Parameters, restarts, status in words, and confused classes."""
        check_is_fitted(self)
        return self.fitted_.fit

    @property
    def label_posterior_(self) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` P(true class | everything known) of the training items."""
        check_is_fitted(self)
        return self.fitted_.label_posterior

    @property
    def class_prior_(self) -> Float[np.ndarray, " k"]:
        """``(K,)`` shares of the true classes; among training items in a cross-fitted model."""
        check_is_fitted(self)
        return self.fitted_.class_shares

    @property
    def class_log_prior_(self) -> Float[np.ndarray, " k"]:
        """``(K,)`` logarithm of :attr:`class_prior_`."""
        return np.log(self.class_prior_)

    @property
    def noise_matrix_(self) -> Float[np.ndarray, "observed k"]:
        """``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one."""
        check_is_fitted(self)
        found = self.fitted_.noise_matrix
        if found is None:
            raise AttributeError(
                f"there is no noise matrix: {type(self).__name__} was fitted without noisy labels y"
            )
        return found

    @property
    def inverse_noise_matrix_(self) -> Float[np.ndarray, "k observed"]:
        """``(K, K)`` ``[true, observed]``, P(true | observed); columns sum to one."""
        joint = self.class_prior_[:, None] * self.noise_matrix_.T
        return joint / joint.sum(0)

    @property
    def objective_(self) -> float:
        """Log-likelihood, log-posterior density or evidence bound, all constants kept."""
        return self.fit_.objective

    @property
    def objective_trace_(self) -> Float[np.ndarray, " steps"]:
        """Objective at each accepted point; it never falls."""
        return self.fit_.trace

    @property
    def n_iter_(self) -> int:
        """Number of accepted points."""
        return self.fit_.n_iter

    @property
    def converged_(self) -> bool:
        """Whether the fit converged and nothing was interrupted."""
        check_is_fitted(self)
        return self.fitted_.converged

    @property
    def chosen_(self) -> dict[str, Any]:
        """Values of the settings that were selected, with the number of self-training rounds.

        ``scores`` is among them where noise and labels are those under other scores than the
        model's: of a ``"nonlinear classifier"`` where the model of the features is poor, of a
        ``"linear discriminant"`` where few rows form a clear cluster for each class, of a
        ``"discriminant along linear scores"`` where the shape of the classes along these surely
        shows errors that held-out labels do not. ``predictions`` is where new items are predicted
        by one of them.
        """
        check_is_fitted(self)
        return dict(self.fitted_.chosen)

    @property
    def error_rates_(self) -> pd.DataFrame | None:
        """Share of wrong labels by how much is known of their rows; None where it is one rate."""
        check_is_fitted(self)
        rates = self.fitted_.error_rates
        return None if rates is None else rates.table()

    @property
    def choice_(self) -> pd.DataFrame | None:
        """All that was compared, by the log-likelihood of held-out labels; None where nothing."""
        check_is_fitted(self)
        return self.fitted_.choice

    def _drawn_model(self, method: str) -> FittedModel:
        """The model that posterior draws by a method are of."""
        return self.fitted_

    def _reported(self, draws: Any, rng: np.random.Generator) -> Any:
        """Draws of what the estimator's attributes are of."""
        return draws

    def _item_names(self) -> Any:
        """``(N,)`` names of the training items."""
        return pd.RangeIndex(len(self.fitted_.fit.resp))

    def _coords(self) -> dict[str, Mapping[str, Any]]:
        """Names along dimensions of draws, by component and dimension."""
        return {c.name: c.encoder.coords() for c in self.fitted_.coded}

    def _by_feedback(self, side: Literal["cut", "joint"]) -> FittedModel:
        """The cut or the joint fit of the same data.

        Raises:
            DataError: the model has one form only.
        """
        raise DataError(f"feedback: {type(self).__name__} is fitted in one way; expected None")

    def verdict(self) -> Verdict:
        """Model checks of the fit, in words and as data; computed once.

        Returns:
            A :class:`nbmodels.diagnostics.findings.Verdict` with ``.ok``, ``.sentence`` and
            ``.table()``.
        """
        check_is_fitted(self)
        if self._verdict is None:
            with computing(self.fitted_.double):
                self._verdict = self._check().beside((*self.fitted_.cautions, *self._cautions))
        return self._verdict

    def _check(self) -> Verdict:
        """The checks that make sense of such a fit."""
        from nbmodels.diagnostics.check import check_model
        from nbmodels.diagnostics.share_wrong import share_limits

        return check_model(
            self.fitted_.fit,
            self.fitted_.data,
            self.classes_,
            self.fitted_.columns,
            collapsed=self.fitted_.collapsed,
            crossed=self._crossed(),
            label_posterior=self.label_posterior_,
            share_wrong=self.fitted_.share_wrong,
            separable=self.fitted_.separable,
            vote_dependence=self._vote_dependence(),
            reference=self.fitted_.reference,
            corrected=self.fitted_.reference_corrected,
            limits=share_limits(self.fitted_),
            cautions=self.fitted_.cautions,
            of_graph=self._of_graph(),
            advised=self._advised or (type(self).__name__, self._settable()),
            shares=self._known_shares(),
        )

    def _known_shares(self) -> np.ndarray | None:
        """``(K,)`` class shares that were given, in the order of the classes; or None."""
        given = self._by_class(self.get_params(deep=False), Classes(self.classes_))
        shares = given.get("class_prior")
        return None if shares is None else np.asarray(shares, float)

    def _vote_dependence(self) -> VoteDependence | None:
        """What several annotators' votes show of themselves, where there are any."""
        return self.fitted_.vote_dependence

    def _of_graph(self) -> bool:
        """Whether items are known by their edges alone."""
        return False

    def _crossed(self) -> tuple[FittedModel, FittedModel] | None:
        """A joint fit to a graph beside a cross-fitted one; None where it is no such fit."""
        return None

    @property
    def noise_range_(self) -> NoiseRange:
        """Both ends of the noise that labels and features allow, with intervals; computed once.

        Errors may depend on the features, and classes may overlap: labels and features alone do
        not distinguish them. The intervals of the fit's own end are of 400 posterior draws, by NUTS
        where ``sample_weight`` is other than 0 and 1, which is slower. See
        :class:`nbmodels.diagnostics.noise_range.NoiseRange`.

        Raises:
            AttributeError: there is no noisy label an item, too few of them, no features, or the
                noise is known; the estimator does not offer it, as :class:`nbmodels.JointNB`, whose
                sources are no points of one space.
        """
        check_is_fitted(self)
        if self._range is None:
            self._range = self.noise_range()
        return self._range

    def _suspicion(self, p_wrong: np.ndarray, changed: np.ndarray) -> np.ndarray:
        """``(N,)`` how soon a label is to be checked, by which ``corrected_labels`` ranks."""
        return p_wrong

    def _corrected(
        self,
        rows: Any,
        given: np.ndarray,
        codes: np.ndarray,
        extra: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """The table that every ``corrected_labels`` returns.

        Args:
            rows: ``(N,)`` ids of the items.
            given: ``(N,)`` given labels.
            codes: ``(N,)`` their codes, -1 where there is none.
            extra: further columns.
        """
        resp = self.label_posterior_
        known = codes >= 0
        right = resp[np.arange(len(resp)), np.maximum(codes, 0)]
        p_wrong = np.where(known, np.maximum(1 - right, 0), np.nan)
        soon = self._suspicion(p_wrong, known & (resp.argmax(1) != codes))
        # what was checked is not to be checked again
        checked = known & checked_rows(self.fitted_.fit.model, self.fitted_.data, len(resp))
        order = pd.Series(np.where(checked, -np.inf, soon))
        rank = order.rank(ascending=False, method="first").astype("Int64")
        frame = pd.DataFrame(
            {
                "row": np.asarray(rows),
                "given": given,
                "suggested": self.classes_[np.argmax(resp, axis=1)],
                "p_suggested": np.minimum(resp.max(1), 1),
                "p_wrong": p_wrong,
                "rank": rank,
                **(extra or {}),
            }
        )
        verdict = self.verdict()
        frame.attrs["verdict"] = verdict.sentence
        if not verdict.ok:
            frame["failed_checks"] = ", ".join(dict.fromkeys(f.name for f in verdict.bad))
        return frame
