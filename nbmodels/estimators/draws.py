"""Posterior draws, as a method of the base of all estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from inference.arrays import on_device, random_key
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import untempered
from nbmodels.fitting.checked_rows import named_by_checks
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.noise_forms import with_full_form
from nbmodels.fitting.options import is_auto

if TYPE_CHECKING:
    from nbmodels.estimators.base import LatentClassModel

#: Number of weighted rows up to which draws by default are by NUTS: half a minute of 400 rows.
_MOST_BY_NUTS = 2_000


def posterior(
    self: LatentClassModel,
    method: Literal["auto", "gibbs", "vb", "svi", "nuts"] = "auto",
    *,
    feedback: Literal["cut", "joint", "mixed"] | None = None,
    random_state: Any = None,
    **options: Any,
) -> Any:
    """Posterior draws of the noise matrix, the class shares and the features' parameters.

    Pseudo-labels of the noise's prior count as they do in the fit: its point is their centre.
    In a cross-fitted model draws condition on the features' scores, and do not vary with what
    the features' model gets wrong: there are none of the features' parameters, and class shares
    are those among the items. Where other forms of the noise matrix may be right (on a graph, or
    where labels are few and ``noise`` is not given), each draw by Gibbs sampling is of one of
    them, by their probabilities (Bayesian model averaging).
    Some draws of a graph's noise matrix are by the votes of two halves of the users
    (:mod:`nbmodels.posterior.noise_by_halves`); its other parameters are those by scores.
    Where groups of rows share errors (``groups=``, or near copies), draws vary as those of
    fewer labels would (:mod:`nbmodels.fitting.design_effect`).

    Args:
        method: ``"gibbs"`` on the fast core; ``"vb"``, draws of the CAVI posterior; ``"svi"``
            or ``"nuts"`` on the NumPyro program (small data). ``"auto"`` is ``"gibbs"``, and of
            up to 2,000 rows of which some have a ``sample_weight`` other than 0 and 1, which
            draws of single classes cannot honour, ``"nuts"``, which takes longer.
        feedback: None for that of the fit, as ``training`` has it. ``"joint"``, with feedback
            from labels to features; ``"cut"``, without; ``"mixed"``, both pooled by the
            distance of their noise matrices against their spread, with a test of whether they
            agree (:mod:`nbmodels.posterior.semi_modular`). For tables whose features have a
            model. ``"mixed"`` draws twice. A fit that ``training`` did not make is made now,
            and takes as long as it would have then.
        random_state: seed of the draws; the estimator's own by default, of which None takes
            others each time.
        options: ``draws`` (``"auto"``, as many as it takes), ``warmup``, ``chains`` (4),
            ``thin``, ``keep`` (``"small"``, ``"all"`` or ``"parameters"``), ``sandwich``,
            ``progress`` (by default as the ``solver`` has it), and those of a method; see
            :func:`nbmodels.posterior.sample`.

    Returns:
        :class:`~xarray.DataTree` of ArviZ; see :func:`nbmodels.posterior.sample`.

    Raises:
        DataError: an unknown option, or one out of its range; ``feedback`` of a model that has
            no such fit; row weights other than 0 and 1 under ``"gibbs"``.

    Warns:
        PosteriorWarning: a convergence or accuracy check of the draws failed, or the joint
            posterior disagrees with the cut one.
    """
    from nbmodels.posterior.grouped_rows import for_groups
    from nbmodels.posterior.options import check_feedback, check_known
    from nbmodels.posterior.sampling import about_mode, sample
    from nbmodels.posterior.semi_modular import mixed

    check_is_fitted(self)
    check_feedback(feedback)
    chosen = _method(method, self.fitted_)
    check_known(chosen, options)
    seed = self._seed(random_state)
    options.setdefault("progress", self._solver.progress)

    def drawn(fitted: FittedModel) -> Any:
        if chosen == "gibbs" and is_auto(self._parameters().get("noise", "auto")):
            fitted = with_full_form(fitted)
        own, *others = (
            one._replace(
                fit=about_mode(one.fit),
                data=jax.tree.map(on_device, untempered(one.fit.model, one.data)),
            )
            for one in fitted.posterior_targets
        )
        names = self.fitted_.names
        named = self._named or named_by_checks(own.fit.model, own.data, len(names)).all()
        tree = sample(
            own.fit,
            own.data,
            random_key(seed),
            method=chosen,
            names=names,
            features=dict(self.fitted_.columns),
            units=dict(self.fitted_.units),
            coords=self._coords(),
            item_names=self._item_names(),
            alternatives=others,
            named=bool(named),
            **options,
        )
        effects = replace(fitted, copies=self.fitted_.copies).design_effects
        rng = np.random.default_rng(seed)
        tree = self._reported(for_groups(tree, effects, rng), rng)
        tree.attrs["undecided"] = self.verdict().undecided
        return tree

    with computing(self.fitted_.double):
        if feedback is None:
            return drawn(self._drawn_model(chosen))
        if feedback != "mixed":
            out = drawn(self._by_feedback(feedback))
            out.attrs["feedback"] = feedback
            return out
        cut, joint = (self._by_feedback(side) for side in ("cut", "joint"))
        return mixed(drawn(cut), drawn(joint), np.random.default_rng(seed))


def _method(method: str, fitted: FittedModel) -> Any:
    """The method itself, where it is left to the data."""
    if method != "auto":
        return method
    many = np.count_nonzero(fitted.data.weights) > _MOST_BY_NUTS
    return "gibbs" if many or of_single_rows(fitted) else "nuts"


def of_single_rows(fitted: FittedModel) -> bool:
    """Whether each row counts once or not at all, as draws of single classes need it."""
    return bool(np.isin(fitted.data.weights, (0, 1)).all())
