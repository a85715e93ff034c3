"""Python code in the README runs as it stands there, on small stand-in data."""

import ast
import pkgutil
import re
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

import nbmodels
from inference import Status

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
#: What tells a block from the others, by the name that it has here.
SHOWN = {
    "first": "model.corrected_labels()",
    "audit": "model.audit_plan(",
    "scores": "noisy_test_scores(",
    "options": "Solver(",
    "joint": "JointNB(",
    "own": "em)(",
}

N, K, D = 240, 3, 12


def stand_ins():
    """The names that the README takes as given."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, N)
    names = np.array(["ant", "bee", "cat"])
    labels = np.where(rng.random(N) < 0.2, (truth + 1) % K, truth)
    probs = np.where(np.arange(D) % K == np.arange(K)[:, None], 0.9, 0.1)
    X = (rng.random((N, D)) < probs[truth]).astype(int)
    worker = np.tile(["ann", "bob"], N)
    named = np.repeat(truth, 2)
    named = np.where(rng.random(2 * N) < 0.3, (named + 1) % K, named)
    votes = {"task": np.repeat(np.arange(N), 2), "worker": worker, "label": names[named]}
    # a user keeps to items of one class
    users = rng.integers(0, 10, 3 * N) * K + np.repeat(truth, 3)
    pairs = {"user": users, "item": np.repeat(np.arange(N), 3)}
    return {
        "X": X,
        "y": names[labels],
        "X_new": X[:20],
        "votes": pd.DataFrame(votes),
        "pairs": pd.DataFrame(pairs),
        "codes": labels,
        "words": X,
        "sensors": truth[:, None] + rng.normal(size=(N, 2)),
        "n_words": D,
        "n_sensors": 2,
        "n_items": N,
    }


def imports():
    """All imports of all blocks: a later block builds on those of an earlier one."""
    nodes = [n for block in BLOCKS for n in ast.parse(block).body]
    return "\n".join(ast.unparse(n) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom))


def run(name, **more):
    """Names that a block leaves behind, of which some may be given."""
    (block,) = [b for b in BLOCKS if SHOWN[name] in b]
    namespace = stand_ins() | more
    exec(imports(), namespace)
    exec(compile(block, f"README.md, {name}", "exec"), namespace)
    return namespace


def test_every_block_is_run():
    assert [sum(shown in block for shown in SHOWN.values()) for block in BLOCKS] == [1] * len(
        BLOCKS
    )
    assert len(BLOCKS) == len(SHOWN)


@pytest.mark.slow
def test_the_first_estimator():
    after = run("first")
    model = after["model"]
    np.testing.assert_allclose(model.noise_matrix_.sum(0), 1)
    assert (
        np.mean(model.predict(after["X"]) == np.array(["ant", "bee", "cat"])[after["codes"]]) > 0.6
    )
    described = re.search(r"corrected_labels\(\)  # data frame: ([\w, ]+)", README)[1]
    assert list(model.corrected_labels())[:6] == described.split(", ")


@pytest.mark.slow
def test_an_audit_and_scores_on_noisy_labels():
    given = stand_ins()
    model = nbmodels.NoisyBernoulliNB.published(random_state=0).fit(given["X"], given["y"])
    audited = run("audit", model=model)
    assert audited["result"].share_wrong.value == 0  # all given labels were taken for right
    scores = run("scores", model=audited["model"])["scores"]
    assert scores.accuracy.low <= scores.accuracy.value <= scores.accuracy.high


def test_options_of_training_and_solver():
    run("options")


def test_several_sources():
    joint = run("joint")["joint"]
    assert set(joint.noise_matrices()) == {"labels", "crowd"}


def test_a_model_of_ones_own():
    import numpyro  # it takes a second to load

    after = run("own")
    assert Status(int(after["result"].status)).ok
    with numpyro.handlers.seed(rng_seed=jax.random.key(0)):
        assert "words_probs" in numpyro.handlers.trace(after["program"]).get_trace()


def test_names_and_links_lead_somewhere():
    for name in re.findall(r"^\| (`\w.*?) \|", README, re.MULTILINE):
        for estimator in re.findall(r"`(\w+)", name):
            assert estimator in nbmodels.__all__
    for name in re.findall(r"\]\((?!http)(\S+)\)", README):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"`(nbmodels\.\w[\w.]*)", README):
        pkgutil.resolve_name(name)
