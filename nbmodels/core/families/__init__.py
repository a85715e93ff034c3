"""Conjugate families of distributions: the only place that knows ML from MAP, VB and Gibbs draws.

Each family is a pytree that holds the parameters of a conjugate distribution. The same class serves
as prior and as posterior: ``posterior(stats, rule)`` adds sufficient statistics to a prior,
``likelihood_params(rule, key)`` gives what a likelihood reads (log-probabilities, or means and
precisions), ``penalty(prior, rule)`` is what the objective subtracts, less the part
``prior.constant(rule)`` that no iteration changes. Under the four rules:

========  =======================  ===============================  ======================
rule      ``posterior``            ``likelihood_params``            penalty and constant
========  =======================  ===============================  ======================
``ml``    flat prior + statistics  at the mode                      0
``map``   prior + statistics       at the mode                      -log prior at the mode
``vb``    prior + statistics       expectation                      KL(posterior || prior)
``draw``  prior + statistics       at a draw (``key`` is required)  0
========  =======================  ===============================  ======================

``likelihood_params("mean")`` reads the posterior mean, for reports.

Modes are those of the densities that NumPyro writes: of probabilities on the simplex, of
(mean, variance) and of (mean, covariance matrix).
"""

from nbmodels.core.families.base import (
    RULES,
    VARIANCE_FLOOR,
    DrawKey,
    Family,
    Rule,
    constrain,
    free,
    static,
)
from nbmodels.core.families.diagonal_normal import DiagonalNormal
from nbmodels.core.families.dirichlet import Dirichlet, beta
from nbmodels.core.families.full_normal import FullNormal
from nbmodels.core.families.multivariate_t import MultivariateT
from nbmodels.core.families.normal_inverse_gamma import DiagonalGaussianParams, NormalInverseGamma
from nbmodels.core.families.normal_inverse_wishart import FullGaussianParams, NormalInverseWishart

__all__ = [
    "RULES",
    "VARIANCE_FLOOR",
    "DiagonalGaussianParams",
    "DiagonalNormal",
    "Dirichlet",
    "DrawKey",
    "Family",
    "FullGaussianParams",
    "FullNormal",
    "MultivariateT",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "Rule",
    "beta",
    "constrain",
    "free",
    "static",
]
