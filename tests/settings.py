"""Constructors for tests that name settings flat, wherever they stand in an estimator."""

SOLVER = ("method", "max_iter", "tol", "n_restarts", "accelerate", "precision", "progress")
SOLVER += ("on_interrupt",)
PRIORS = ("class_alpha", "noise_alpha", "noise_diagonal")
TRAINING = ("size_power", "init", "collapsed", "noise_folds")
NESTED = (
    {name: f"solver__{name}" for name in SOLVER}
    | {name: f"priors__{name}" for name in PRIORS}
    | {name: f"training__{name}" for name in TRAINING}
)


def configured(make, **parameters):
    """An estimator, with settings of its configuration objects by their own names.

    Args:
        make: constructor, or ``published``.
        parameters: by name; ``weight`` is the training's where the estimator has none itself.
    """
    flat = {n: v for n, v in parameters.items() if n not in NESTED and n != "weight"}
    estimator = make(**flat)
    nested = {NESTED[n]: v for n, v in parameters.items() if n in NESTED}
    if "weight" in parameters:
        own = "weight" in estimator.get_params(deep=False)
        nested["weight" if own else "training__weight"] = parameters["weight"]
    return estimator.set_params(**nested)
