"""What every estimator of latent classes shares: options of the fit, solving, read-outs."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from nbmodels.class_priors import FixedProportions, Proportions
from nbmodels.core.component import Component
from nbmodels.core.families import RULES, Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.data.labels import Classes
from nbmodels.data.validation import as_floats, check_nonnegative
from nbmodels.errors import DataError
from nbmodels.fitting.em import Fit, fit_many
from nbmodels.fitting.empirical_bayes import fit_pooled
from nbmodels.fitting.graph import Edges, fit_collapsed

if TYPE_CHECKING:
    from nbmodels.diagnostics.findings import Verdict

#: Up to so many cells (rows x columns x classes) ``precision="auto"`` computes in float64.
_DOUBLE_UP_TO = 20_000_000

#: Seconds after which a progress bar appears.
_PATIENCE = 3.0


def with_inherited_parameters(cls: type) -> type:
    """Append what the base classes share to the docstring and to the constructor's signature.

    scikit-learn reads parameters off the signature; this spares writing them out in every class.
    """
    bases = [c for c in cls.__mro__ if issubclass(c, LatentClassifier)]

    def section(name: str) -> str:
        entries: dict[str, str] = {}
        for c in bases:
            text = inspect.cleandoc(vars(c).get(name, ""))
            for entry in re.split(r"\n(?=\S)", text) if text else []:
                # a subclass may give a name a meaning of its own
                entries.setdefault(entry.split(":")[0], entry)
        return "\n".join(entries.values()).replace("\n", "\n    ")

    if "__init__" not in vars(cls):

        def __init__(self: Any, **parameters: Any) -> None:
            # mypy cannot tell that cls is the class of self
            super(cls, self).__init__(**parameters)  # type: ignore[arg-type]

        # the signature written below is this class's alone; mypy forbids to assign a method
        cls.__init__ = __init__  # type: ignore[misc]
    own = inspect.cleandoc(cls.__doc__ or "")
    attributes = section("attributes_doc")
    cls.__doc__ = f"{own}\n    {section('parameters_doc')}\n\nAttributes:\n    {attributes}\n"
    seen: dict[str, inspect.Parameter] = {}
    for c in bases:
        init: Any = c.__init__
        for name, parameter in inspect.signature(init).parameters.items():
            if parameter.kind != parameter.VAR_KEYWORD:
                seen.setdefault(name, parameter)
    # what inspect reads first, and mypy knows nothing of
    cls.__init__.__signature__ = inspect.Signature(list(seen.values()))  # type: ignore[misc]
    return cls


class LatentClassifier(ClassifierMixin, BaseEstimator):
    """Base of all estimators: a model with a latent true class, fitted by EM or CAVI."""

    parameters_doc = """
    class_prior: ``(K,)`` known shares of the true classes; None to learn them.
    class_alpha: pseudo-items of each class, where the shares are learned.
    method: ``"map"`` (EM with priors), ``"ml"`` (EM without), ``"vb"`` (variational Bayes).
    classes: names of all classes, where some may not occur among the labels.
    n_restarts: random starts beside the label-anchored one; the best objective wins.
    max_iter: largest number of accepted steps of each start.
    tol: gain in nats per row below which the fit has converged.
    accelerate: extrapolate with monotone SQUAREM.
    precision: ``"single"``, ``"double"``, or ``"auto"``: double unless the data are large.
    progress: show a bar; None to show one once a fit takes over three seconds.
    random_state: seed of the restarts.
    """

    attributes_doc = """
    classes_: ``(K,)`` names of the classes.
    class_prior_: ``(K,)`` shares of the true classes.
    label_posterior_: ``(N, K)`` P(true class | everything known) of the training items.
    objective_: log-posterior density (or likelihood, or evidence bound), all constants kept.
    objective_trace_: the objective at each accepted step; it never falls.
    n_iter_: number of accepted steps.
    converged_: whether the fit converged.
    fit_: everything else: restarts, status in words, confused classes.
    """

    def __init__(
        self,
        *,
        class_prior: Any = None,
        class_alpha: float = 1.0,
        method: Literal["ml", "map", "vb"] = "map",
        classes: Any = None,
        n_restarts: int = 0,
        max_iter: int = 500,
        tol: float = 1e-6,
        accelerate: bool = True,
        precision: Literal["auto", "single", "double"] = "auto",
        progress: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.class_prior = class_prior
        self.class_alpha = class_alpha
        self.method = method
        self.classes = classes
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.precision = precision
        self.progress = progress
        self.random_state = random_state

    #: Plain steps to each look at the objective, where looking costs as much as the step.
    _stride = 1

    #: Graphs in which an item's own vote is left out of its users' counts, by component.
    _graphs: Mapping[str, Edges] = MappingProxyType({})

    # Parameters ---------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if self._rule not in RULES:
            raise DataError(f"method: expected one of {RULES}, got {self._rule!r}")
        if self.precision not in ("auto", "single", "double"):
            raise DataError(
                f"precision: expected 'auto', 'single' or 'double', got {self.precision!r}"
            )
        for name in ("class_alpha", "tol"):
            check_nonnegative(name, getattr(self, name))
        for name, least in (("max_iter", 1), ("n_restarts", 0)):
            value = getattr(self, name)
            if not (isinstance(value, int | np.integer) and value >= least):
                raise DataError(f"{name}: expected a whole number, {least} or more; got {value!r}")

    @property
    def _rule(self) -> Rule:
        """The rule of the fit: ``method``, unless that means something else in a subclass."""
        return self.method

    def _double(self, cells: int) -> bool:
        if self.precision == "auto":
            return jnp.zeros(()).dtype == jnp.float64 or cells <= _DOUBLE_UP_TO
        return self.precision == "double"

    def _prior(self, k: int) -> Component:
        if self.class_prior is None:
            return Proportions.of(k, self.class_alpha)
        probs = as_floats("class_prior", self.class_prior)
        if probs.shape != (k,) or not (probs > 0).all() or not abs(probs.sum() - 1) <= 1e-6:
            raise DataError(
                f"class_prior: expected {k} positive probabilities that sum to one, got {probs}"
            )
        return FixedProportions(prior=jnp.asarray(probs))

    # Fitting ------------------------------------------------------------------------------------

    def _seed(self, state: Any = None) -> int:
        state = self.random_state if state is None else state
        return check_random_state(state).randint(np.iinfo(np.int32).max)

    def _solve(
        self,
        model: Mapping[str, Component],
        data: Data,
        classes: Classes,
        n_rows: int,
        start: Any = None,
        log_jacobian: Any = 0.0,
    ) -> None:
        """Fit the model, keep the result without padding, and set the attributes of all fits.

        Args:
            model: components by name.
            data: encoded, perhaps padded data.
            classes: names of the classes.
            n_rows: number of rows before padding.
            start: parameters to begin from instead of the labels.
            log_jacobian: ``(n_rows,)`` what the features' coding adds to an item's log-density.
        """
        with self._report() as report:
            how = self._how(model, classes.names)
            fitted = fit_pooled(model, data, self._pooled(), start=start, report=report, **how)
        self._keep(fitted, data, classes, n_rows, log_jacobian)

    def _how(self, model: Mapping[str, Component], names: Any = None) -> dict[str, Any]:
        """How a model is fitted: by plain updates, or by collapsed ones where graphs have a say.

        Args:
            model: components by name.
            names: ``(K,)`` names of the classes, for warnings.
        """
        speaking = {name: g for name, g in self._graphs.items() if model[name].weight != 0}
        if speaking:
            run = partial(fit_collapsed, edges=speaking)
            return {"run": run, "rule": self._rule, "max_iter": self.max_iter, "names": names}
        return {
            "rule": self._rule,
            "key": jax.random.key(self._seed()),
            "n_restarts": self.n_restarts,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "accelerate": self.accelerate,
            "stride": self._stride,
            "names": names,
        }

    def _runs(
        self, candidates: Sequence[Model], data: Sequence[Data], *, bar: tqdm[Any]
    ) -> Iterator[Fit]:
        """Fits of several models that are compared, their priors taken as they are.

        Args:
            candidates: models.
            data: of each.
            bar: counts the fits.
        """
        if self._graphs:
            for model, own in zip(candidates, data, strict=True):
                yield fit_pooled(model, own, (), **self._how(model))
                bar.update()
            return
        how = self._how(candidates[0])
        del how["names"]

        def report(n_iter: int, _: float) -> None:
            bar.set_postfix_str(f"step {n_iter}", refresh=False)
            bar.update(0)

        yield from fit_many(candidates, data, report=report, **how)
        bar.update(len(candidates))

    def _keep(
        self, fitted: Fit, data: Data, classes: Classes, n_rows: int, log_jacobian: Any = 0.0
    ) -> None:
        """Set the attributes of all fits; arguments as in :meth:`_solve`."""
        jacobian = np.broadcast_to(np.asarray(log_jacobian, float), (n_rows,))
        shift = float(np.sum(np.asarray(data.weights)[:n_rows] * jacobian))
        self.fit_ = replace(
            fitted,
            data=None,
            resp=fitted.resp[:n_rows],
            log_likelihood=fitted.log_likelihood[:n_rows] + jacobian,
            objective=fitted.objective + shift,
            trace=fitted.trace + shift,
            restarts=tuple(r + shift for r in fitted.restarts),
        )
        self._double_ = jnp.zeros(()).dtype == jnp.float64
        self._data = jax.tree.map(np.asarray, data if fitted.data is None else fitted.data)
        self.classes_ = classes.names
        self._verdict: Verdict | None = None

    def _bar(self, words: str, total: int | None = None) -> tqdm[Any]:
        """A progress bar that shows itself when there is something to wait for."""
        return tqdm(
            desc=words,
            total=total,
            unit="step",
            delay=0.0 if self.progress else _PATIENCE,
            disable=self.progress is False,
            leave=False,
        )

    @contextlib.contextmanager
    def _report(self) -> Iterator[Any]:
        # collapsed updates climb no objective: they report how much still moves
        what = "change" if self._graphs else "objective"
        with self._bar("fitting") as bar:

            def report(n_iter: int, value: float) -> None:
                bar.n = n_iter
                bar.set_postfix_str(f"{what} {value:.6g}", refresh=False)
                bar.update(0)

            yield None if self.progress is False else report

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def label_posterior_(self) -> np.ndarray:
        """``(N, K)`` P(true class | features and given label) of the training rows."""
        check_is_fitted(self)
        resp = np.asarray(self.fit_.resp, float)
        return resp / resp.sum(1, keepdims=True)

    @property
    def class_prior_(self) -> np.ndarray:
        """``(K,)`` shares of the true classes."""
        check_is_fitted(self)
        with jax.enable_x64(self._double_):
            probs = np.exp(np.asarray(self.fit_.point[PRIOR], float))
        return probs / probs.sum()

    @property
    def class_log_prior_(self) -> np.ndarray:
        """``(K,)`` logarithm of :attr:`class_prior_`."""
        return np.log(self.class_prior_)

    @property
    def objective_(self) -> float:
        """Log-likelihood, log-posterior density or evidence bound, all constants kept."""
        check_is_fitted(self)
        return self.fit_.objective

    @property
    def objective_trace_(self) -> np.ndarray:
        """Objective at each accepted point."""
        check_is_fitted(self)
        return self.fit_.trace

    @property
    def n_iter_(self) -> int:
        """Number of accepted points."""
        check_is_fitted(self)
        return self.fit_.n_iter

    @property
    def converged_(self) -> bool:
        """Whether the iteration converged; ``fit_.status.sentence`` says how it ended."""
        check_is_fitted(self)
        return self.fit_.status.ok

    def posterior(
        self,
        method: Literal["gibbs", "vb", "svi", "nuts"] = "gibbs",
        *,
        random_state: Any = None,
        **options: Any,
    ) -> Any:
        """Posterior draws of the noise matrix, the class shares and the features' parameters.

        Pseudo-labels of the noise's prior count as they do in the fit: its point is their centre
        (:func:`nbmodels.posterior.sampling.about_mode`). Where the feedback to the features is cut, draws
        are given the features' scores, and hold nothing of what the features' model gets wrong.

        Args:
            method: ``"gibbs"`` on the fast core; ``"vb"``, draws of the CAVI posterior; ``"svi"``
                or ``"nuts"`` on the NumPyro program (small data).
            random_state: seed of the draws; the estimator's own by default.
            options: ``draws`` (500 a chain), ``warmup``, ``chains`` (4), ``thin``, ``keep``
                (``"small"`` or ``"all"``), ``sandwich``, ``progress``, and those of a method; see
                :func:`nbmodels.posterior.sampling.sample`.

        Returns:
            ArviZ ``DataTree``; see :func:`nbmodels.posterior.sampling.sample`.

        Warns:
            PosteriorWarning: something speaks against trusting the draws.
        """
        from nbmodels.posterior.sampling import about_mode, sample

        check_is_fitted(self)
        with jax.enable_x64(self._double_):
            fitted, data = self._sampled()
            return sample(
                about_mode(fitted),
                jax.tree.map(jnp.asarray, data),
                jax.random.key(self._seed(random_state)),
                method=method,
                names=self.classes_,
                features=self._features(),
                units=self._units(),
                **options,
            )

    def _sampled(self) -> tuple[Fit, Data]:
        """The fit that posterior draws are of, and its data."""
        return self.fit_, self._data

    def verdict(self) -> Verdict:
        """What speaks against the fit, in words and as data; looked at once.

        Returns:
            :class:`nbmodels.diagnostics.findings.Verdict`: ``.ok``, ``.sentence``, ``.table()``.
        """
        check_is_fitted(self)
        if self._verdict is None:
            from nbmodels.diagnostics.check import check_model

            with jax.enable_x64(self._double_):
                self._verdict = check_model(
                    self.fit_,
                    self._data,
                    self.classes_,
                    self._features(),
                    collapsed=bool(self._graphs),
                )
        return self._verdict

    def _pooled(self) -> tuple[str, ...]:
        """Names of the components whose prior is learned."""
        return ()

    def _features(self) -> dict[str, list[str]]:
        """Names of the columns of each emission, for the draws."""
        return {}

    def _units(self) -> dict[str, Any]:
        """By emission, a function from its parameters to the units of the data."""
        return {}
