# %% [markdown]
# # 5. Knowing what a thing is not (Chen et al. 2019)
#
# **You will be able to** train naive Bayes on "is not" labels in four ways, compute the bias and
# variance of each, and say why one of them needs no tuning.
#
# **Question:** of most pictures we are only told one digit that they do *not* show. What is that
# worth?
#
# The paper: Chen, Dai, Duan, Hu, Li, Matzinger, Popescu and Zhai, "A cost-reducing partial labeling
# estimator in text classification problem". You should have met the multinomial distribution, and
# the bias and variance of an estimate.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy.special import softmax
from sklearn.datasets import load_digits

from inference.nuts import nuts
from nbmodels import PartialLabelNB, Solver
from nbmodels.papers import chen2019

jax.config.update("jax_enable_x64", True)  # numbers are compared to many digits below
fast = bool(os.environ.get("NBMODELS_FAST"))  # fewer data sets and draws for a quick test

# %% [markdown]
# ## The data
#
# The paper counts words in texts. To see what is learned we count drops of ink in pictures: a
# "document" is 20 drops that fall on 64 pixels, a "word" is a pixel. Each of four digits (3, 5, 8,
# 9) has its own distribution of drops, the average of scikit-learn's handwritten ones. In the
# letters of the paper: k classes, v words, m words in each document, and **centroids** $\theta_i$,
# each of which sums to one.
#
# In part $S_1$ the class is given ($y_i = 1$); in part $S_2$ one class is given that the document
# is *not* of ($z_i = 1$).

# %%
# Figure: Four digits, each a picture of eight by eight pixels that holds twenty drops of ink.
names = np.array(["3", "5", "8", "9"])
digits = load_digits()
theta = np.stack([digits.data[digits.target == int(name)].mean(0) + 0.02 for name in names])
theta /= theta.sum(1, keepdims=True)
k, v, m = 4, 64, 20


def draw(rng, n_C, n_D):
    """``n_C`` documents labelled with each class, ``n_D`` labelled as not of each class."""
    positive, negative = np.repeat(np.arange(k), n_C), np.repeat(np.arange(k), n_D)
    others = (negative + rng.integers(1, k, len(negative))) % k  # any class but that one
    true = np.concatenate([positive, others])
    x = rng.multinomial(m, theta[true])
    none = np.zeros((len(negative), k)), np.zeros((len(positive), k))
    y, z = np.vstack([np.eye(k)[positive], none[0]]), np.vstack([none[1], np.eye(k)[negative]])
    return x, y, z, true


x, y, z, true = draw(np.random.default_rng(0), 5, 60)
print(f"{int(y.sum())} documents with a class, {int(z.sum())} with a class that they are not of")

figure, panels = plt.subplots(1, 4, figsize=(7, 2), layout="constrained")
for axes, at in zip(panels, [0, 5, 10, 15], strict=True):
    axes.imshow(x[at].reshape(8, 8), cmap="Greys")
    article = "an" if names[true[at]] == "8" else "a"
    axes.set_title(f"{article} {names[true[at]]}, 20 drops", fontsize=10)
    axes.set_axis_off()

# %% [markdown]
# ## The story as a picture
#
# Round brackets are hidden, square ones are seen, arrows say what is drawn from what, and
# everything in a box is repeated as often as its corner says.
#
# ```text
#                    ┌───────────────────────── n documents ┐
#                    │                                      │
#   P ───────────────┼──▶ ( C ) ────▶ [ possible classes ]  │
#                    │      │                               │
#   ┌─ k classes ─┐  │      ▼                               │
#   │ ( theta ) ──┼──┼──▶ [ x ]                             │
#   └─────────────┘  └──────────────────────────────────────┘
# ```
#
# - Each document has a class C, drawn by the shares $P(C_i)$.
# - Its words x are drawn from the centroid $\theta_i$ of that class.
# - What is known of the class is a set of classes that are still possible: one in $S_1$, three in
#   $S_2$, all four if nobody said anything.
#
# ## Three closed forms
#
# If $\log f_i(x) = \log P(C_i) + \sum_j x_j \log \theta_{ij}$ is the log-probability of document
# and class i, then all estimators of the paper maximise a weighted sum,
#
# $$\sum_x \sum_i w_i(x) \log f_i(x).$$
#
# The part with $\theta_i$ is $\sum_j c_{ij} \log \theta_{ij}$, where $c_{ij} = \sum_x w_i(x)\, x_j$
# counts word j in class i, with weights. Under the condition $\sum_j \theta_{ij} = 1$, Lagrange's
# rule says $c_{ij} / \theta_{ij} = \lambda$ for all j. So $\theta_i$ is proportional to $c_i$:
# **weighted counting, and only the weights differ.**
#
# | estimator | weight of a document in class i |
# |---|---|
# | naive Bayes (3.10) | $y_i$: $S_2$ is thrown away |
# | L1 (4.2) | $y_i$; in $S_2$ the document is shared out evenly over the classes still possible |
# | L2 (4.4) | $y_i - z_i + t$, with a number $t > 1$ that keeps it positive |
# | L\* (4.5) | as L2, but "is 3" counts as "is not 5, 8, 9" as well |


# %%
def weights(y, z, t=2.0):
    labelled = y.any(1, keepdims=True)
    possible = np.where(labelled, y, 1 - z)
    others = np.where(labelled, 1 - y, z)
    return {
        "NB": y,
        "L1": possible / possible.sum(1, keepdims=True),
        "L2": y - z + t,
        "L*": y - others + t,
    }


def centroids(w, x, alpha=0.0):
    counts = w.T @ x + alpha
    return counts / counts.sum(1, keepdims=True)


label = [names[row > 0][0] if row.any() else None for row in y]
excluded = [list(names[row > 0]) for row in z]
for name, estimator in [("L1", "L1"), ("L2", "L2"), ("L*", "star")]:
    library = PartialLabelNB(estimator=estimator, alpha=0.0, classes=names)
    library.fit(x, label, excluded=excluded)
    gap = np.abs(np.exp(library.feature_log_prob_) - centroids(weights(y, z)[name], x)).max()
    print(f"{name}: largest difference to the library {gap:.0e}")
    assert gap < 1e-12

# %% [markdown]
# ## A fourth way: the class is hidden, so sum over it
#
# None of these weights looks at the *words*. But a document that is not a 5 and has ink where a 9
# has its neck is hardly an 8. The model of notebooks 1 and 2 says this: the class is hidden, and
# the labels say which classes are possible. It needs no t. In NumPyro, with the class summed out
# and one pseudo-count for each word:

# %%
possible = np.where(y.any(1, keepdims=True), y, 1 - z)


def model():
    P = numpyro.sample("P", dist.Dirichlet(jnp.full(k, 2.0)))
    theta = numpyro.sample("theta", dist.Dirichlet(jnp.full((k, v), 2.0)).to_event(1))
    words = x @ jnp.log(theta).T  # log-probability of each document's words in each class
    labels = jnp.where(possible > 0, 0.0, -jnp.inf)
    each = jnp.arange(len(x))
    with numpyro.plate("documents", len(x)):
        C = numpyro.sample("C", dist.Categorical(P), infer={"enumerate": "parallel"})
        numpyro.factor("evidence", (words + labels)[each, C])


# %% [markdown]
# **EM.** E-step, Bayes' rule with impossible classes at zero:
#
# $$r_i(x) \propto P(C_i) \prod_j \theta_{ij}^{x_j} \;\text{ if class i is possible, else } 0.$$
#
# M-step: the average of the log-likelihood over the hidden classes is the weighted sum above with
# $w = r$. So it is weighted counting once more, and the weights learn from the words.


# %%
def em(x, y, z, alpha=1.0, rounds=300):
    possible = np.where(y.any(1, keepdims=True), y, 1 - z)
    r = possible / possible.sum(1, keepdims=True)  # where L1 ends, EM begins
    for _ in range(rounds):
        P = (r.sum(0) + 1) / (len(x) + k)
        found = centroids(r, x, alpha)
        logs = np.log(P) + x @ np.log(found).T
        r = softmax(np.where(possible > 0, logs, -np.inf), axis=1)
    return found, r


found, r = em(x, y, z)
solver = Solver(tol=1e-13, max_iter=20_000)
library = PartialLabelNB(estimator="em", alpha=1.0, solver=solver, classes=names).fit(
    x, label, excluded=excluded
)
gap = np.abs(np.exp(library.feature_log_prob_) - found).max()
print(f"EM: largest difference to the library {gap:.0e}")
assert gap < 1e-5
rest = z.any(1)
print(f"class right in S2: by chance 33%, by EM {np.mean(r.argmax(1)[rest] == true[rest]):.0%}")

# %% [markdown]
# ## The picture to keep
#
# The centroids that each estimator finds, and in the last column the true ones.

# %%
# Figure: Centroids of four digits by each estimator, the true ones in the last column: NB is
# noisy, L1, L2 and L* are nearly the average picture, EM finds the digits.
shown = {name: centroids(w, x) for name, w in weights(y, z).items()}
shown |= {"EM": found, "truth": theta}
figure, panels = plt.subplots(4, 6, figsize=(8, 5.4), layout="constrained")
for column, (name, values) in zip(panels.T, shown.items(), strict=True):
    column[0].set_title(name)
    for axes, image, row in zip(column, values, theta, strict=True):
        axes.imshow(image.reshape(8, 8), cmap="Greys", vmin=0, vmax=1.2 * row.max())
        axes.set_xticks([])
        axes.set_yticks([])
for axes, name in zip(panels[:, 0], names, strict=True):
    axes.set_ylabel(name, rotation=0, labelpad=12, va="center", fontsize=12)

# %% [markdown]
# Naive Bayes has little ink to go by: much **variance**. L1 is smooth, but each digit is mixed with
# the others: **bias**. L2 and L\* give every document a weight of about t in every class, so that
# all four centroids are nearly the average picture. EM sorts the documents, and finds the digits.
#
# ## All answers in one picture
#
# How sure is a centroid? The ten pixels of an "8" with most ink, by **CAVI** (approximate),
# **Gibbs** (classes and centroids in turns) and **NUTS** (the gradient of the NumPyro model).

# %%
n_draws = 20 if fast else 500
cavi = PartialLabelNB(estimator="em", alpha=1.0, solver="vb", classes=names).fit(
    x, label, excluded=excluded
)
how = {"draws": n_draws, "keep": "all", "random_state": 0, "progress": False}
trees = {
    "CAVI": cavi.posterior("vb", correct=False, **how),
    "Gibbs": cavi.posterior("gibbs", thin=1 if fast else 20, **how),
}
few = 4 if fast else 200
start = {"theta": jnp.asarray(found), "P": jnp.full(k, 0.25)}
samples, _ = nuts(
    model, jax.random.key(0), draws=few, warmup=few // 2, chains=1 if fast else 2, start=start
)
draws = {n: t["posterior"]["features_probs"].to_numpy().reshape(-1, k, v) for n, t in trees.items()}
draws["NUTS"] = samples["theta"].reshape(-1, k, v)

# %%
# Figure: Probabilities of the ten pixels of an 8 with most ink: intervals of CAVI, Gibbs and NUTS
# with EM and the truth.
digit = 2  # the 8
pixels = np.argsort(-theta[digit])[:10]
figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
looks = {"CAVI": ("-", "0.6"), "Gibbs": ("-", "black"), "NUTS": (":", "black")}
for shift, (name, (line, color)) in zip((-0.22, 0, 0.22), looks.items(), strict=True):
    low, high = np.quantile(draws[name][:, digit][:, pixels], [0.05, 0.95], axis=0)
    at = np.arange(10) + shift
    axes.vlines(at, low, high, color=color, linestyle=line, linewidth=2.5, label=f"{name}, 90 %")
axes.plot(found[digit][pixels], "o", color="black", markerfacecolor="white", label="EM")
axes.plot(theta[digit][pixels], "_", color="0.4", markersize=26, label="planted")
axes.set_xticks(range(10), [f"{at // 8}, {at % 8}" for at in pixels])
axes.set_xlabel('pixel (row, column) of the "8"')
axes.set_ylabel("share of the ink")
figure.legend(loc="outside lower center", ncols=5, frameon=False)
widths = {
    n: np.diff(np.quantile(d[:, digit], [0.05, 0.95], axis=0), axis=0) for n, d in draws.items()
}
print("mean width of the interval:", end=" ")
print(", ".join(f"{name} {width[:, pixels].mean():.4f}" for name, width in widths.items()))
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# Gibbs and NUTS agree, CAVI is a little narrower: it takes the hidden classes and the centroids to
# be independent. The difference is small here, as the words tell most classes apart. EM's point is
# the top of a density in 256 dimensions, not its middle, and lies near the end of some intervals.
# (There is another top of nearly the same height: EM that starts from CAVI's classes ends there.)
#
# ## Bias and variance
#
# Draw the data anew many times, and look at the spread of the estimates around their average
# (variance) and at the distance of that average from the truth (bias). The paper's Theorems 1 to 3
# give formulas, here those of `nbmodels.papers.chen2019`, in which two slips are mended:
#
# - Theorem 3 says that the bias of L2 is O(t). It does not grow with t without limit (exercise 1).
# - Its variance forgets that documents "not of class i" are of several classes, whose centroids
#   differ. That part does not shrink with longer documents: O(1/|S|), not O(1/(m|S|)).

# %%
repeats = 10 if fast else 200
n_C, n_D = 5, 60
estimates = {name: [] for name in [*weights(y, z), "EM"]}
for seed in range(repeats):
    again, y_again, z_again, _ = draw(np.random.default_rng(seed), n_C, n_D)
    for name, w in weights(y_again, z_again).items():
        estimates[name].append(centroids(w, again))
    estimates["EM"].append(em(again, y_again, z_again, rounds=40)[0])
print("         bias^2   variance    (times 1000, summed over words, mean over classes)")
errors = {}
for name, drawn in estimates.items():
    drawn = np.array(drawn)
    bias = np.sum((drawn.mean(0) - theta) ** 2, axis=1).mean()
    errors[name] = 1000 * np.array([bias, drawn.var(0).sum(1).mean()])
    print(f"{name:6} {errors[name][0]:8.2f} {errors[name][1]:10.2f}")

in_theory = {
    "NB": (0 * theta, chen2019.variance_nb(theta, n_C, m)),
    "L2": (
        chen2019.mean_2(theta, [n_C] * k, [n_D] * k, 2.0) - theta,
        chen2019.variance_2(theta, [n_C] * k, [n_D] * k, m, 2.0),
    ),
}
print("the theorems:")
for name, (bias, variance) in in_theory.items():
    both = 1000 * np.sum(bias**2, 1).mean(), 1000 * np.sum(variance, 1).mean()
    print(f"{name:6} {both[0]:8.2f} {both[1]:10.2f}")

# %%
# Figure: Squared bias and variance of the centroids by estimator: NB has variance, the paper's
# estimators bias, EM little of either.
figure, axes = plt.subplots(figsize=(6, 2.8), layout="constrained")
bars = np.array(list(errors.values()))
axes.barh(list(errors), bars[:, 0], color="black", label="bias, squared")
axes.barh(list(errors), bars[:, 1], left=bars[:, 0], color="0.75", label="variance")
axes.invert_yaxis()
axes.set_xlabel("mean squared error of a centroid, times 1000")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# NB pays in variance, the paper's three estimators in bias. They have smaller variances, as the
# paper says, and here all three have smaller errors than NB, L1 the smallest of them. EM has next
# to no bias *and* a small variance: it uses the same labels, and the words as well.
#
# ## The paper's main figure
#
# Figures 1 to 3 of the paper: accuracy with both kinds of labels, with negative ones only, and with
# positive ones only. The paper smooths nothing. The right panel adds a tenth of a pseudo-count a
# word, as everybody does with naive Bayes.


# %%
# Figure: Accuracy by estimator and kind of labels, without smoothing and with a tenth of a
# pseudo-count: EM is far ahead wherever there are negative labels.
def accuracy(found, new, true):
    with np.errstate(divide="ignore"):
        logs = np.nan_to_num(np.log(found), neginf=-1e9)  # a word never seen forbids the class
    return np.mean((new @ logs.T).argmax(1) == true)


settings = {"both": (5, 60), "negative only": (0, 60), "positive only": (10, 0)}
methods = ["NB", "L1", "L2", "L*", "EM"]
repeats = 1 if fast else 15
scores = np.full((2, len(settings), len(methods), repeats), np.nan)
for i, (n_C, n_D) in enumerate(settings.values()):
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        x_i, y_i, z_i, _ = draw(rng, n_C, n_D)
        new, _, _, classes = draw(rng, 250, 0)
        for a, alpha in enumerate((0.0, 0.1)):
            for b, w in enumerate(weights(y_i, z_i).values()):
                if w.any():
                    scores[a, i, b, seed] = accuracy(centroids(w, x_i, alpha), new, classes)
            by_em, _ = em(x_i, y_i, z_i, alpha=max(alpha, 1e-6), rounds=100)
            scores[a, i, 4, seed] = accuracy(by_em, new, classes)

shifts = np.linspace(-0.24, 0.24, len(methods))  # side by side, so that no marker hides another
figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for axes, part, title in zip(
    panels, scores.mean(3), ["no smoothing", "0.1 pseudo-counts"], strict=True
):
    for shift, name, values, marker in zip(shifts, methods, part.T, "xs^vo", strict=True):
        color = "black" if name == "EM" else "0.4"
        look = {"color": color, "markerfacecolor": "white", "markersize": 8, "label": name}
        axes.plot(np.arange(3) + shift, values, marker, **look)
    axes.set_xticks(range(3), list(settings))
    axes.set_xlim(-0.5, 2.5)
    axes.set_title(title)
panels[0].set_ylabel("accuracy")
panels[1].legend(frameon=False, bbox_to_anchor=(1, 0.5), loc="center left")
for axes in panels:
    axes.spines[["top", "right"]].set_visible(False)
for title, part in zip(["no smoothing:", "0.1 pseudo-counts:"], scores.mean(3), strict=True):
    print(title)
    for name, row in zip(settings, part, strict=True):
        seen = [f"{n} {s:.1%}" for n, s in zip(methods, row, strict=True) if np.isfinite(s)]
        print(f"  {name}: {', '.join(seen)}")

# %% [markdown]
# With positive labels only (right in each panel) L2 and L\* beat naive Bayes, as the paper finds,
# as long as nothing is smoothed. With a tenth of a pseudo-count they no longer do: what they gain
# there is a coarse smoothing, by the words of all documents. With negative labels EM is far ahead,
# because it is the only one that reads the words of a document before it counts them.
#
# ## Exercises
#
# **1.** Is the bias of L2 of order t? Compute it with `chen2019.mean_2` for t = 1, 2, 10, 100 and a
# million. Where do the centroids go?
#
# <details><summary>Solution</summary>
#
# In $(y_i - z_i + t)$ a large t drowns the labels: every class counts all documents alike.
#
# ```python
# for t in (1, 2, 10, 100, 1e6):
#     mean = chen2019.mean_2(theta, [5] * k, [60] * k, t)
#     bias = np.sum((mean - theta) ** 2, axis=1).mean()
#     apart = np.abs(mean[2] - mean[3]).sum()
#     print(f"t = {t:g}: squared bias {1000 * bias:.2f}, 8 and 9 differ by {apart:.4f}")
# ```
#
# ```text
# t = 1: squared bias 1.97, 8 and 9 differ by 0.0440
# t = 2: squared bias 2.28, 8 and 9 differ by 0.0194
# t = 10: squared bias 2.50, 8 and 9 differ by 0.0035
# t = 100: squared bias 2.54, 8 and 9 differ by 0.0003
# t = 1e+06: squared bias 2.55, 8 and 9 differ by 0.0000
# ```
#
# The bias is bounded. All centroids go to the average of all documents.
# </details>
#
# **2.** What should L1 estimate? A document that is not d is of any other class with probability
# 1/3, and L1 gives it the weight 1/3 in each of them. Compute the expectation of L1's centroid of
# class i, with 5 labelled documents and 60 "not d" for each d, and compare with the average over
# draws (`estimates["L1"]`).
#
# <details><summary>Solution</summary>
#
# Class i counts 180 documents (three values of d) with weight 1/3, which is as much as 60 whole
# ones. Of a document that is not d, a third is of class i. The other two thirds are, over the three
# values of d, of each other class alike: 2/9 for each.
#
# ```python
# mixed = theta / 3 + 2 / 9 * (theta.sum(0) - theta)
# expected = (5 * theta + 60 * mixed) / 65
# simulated = np.mean(estimates["L1"], axis=0)
# print(f"largest difference: {np.abs(expected - simulated).max():.4f}")
# print(f"squared bias in theory: {1000 * np.sum((expected - theta) ** 2, 1).mean():.2f}")
# ```
#
# ```text
# largest difference: 0.0005
# squared bias in theory: 1.72
# ```
#
# This is the paper's Theorem 2.
# </details>
#
# **3.** What is a negative label worth? Compare the accuracy of EM with (a) 5 positive labels a
# class alone, (b) these and 240 negative ones, (c) these and 240 documents without any label, and
# of NB with (d) 65 positive labels a class.
#
# <details><summary>Solution</summary>
#
# Without a label nothing is excluded: z is zero.
#
# ```python
# rows = {"a: 5 positive": [], "b: and 240 negative": [], "c: and 240 unlabelled": [], "d: 65": []}
# for seed in range(10):
#     rng = np.random.default_rng(100 + seed)
#     x_b, y_b, z_b, _ = draw(rng, 5, 60)
#     x_d, y_d, z_d, _ = draw(rng, 65, 0)
#     new, _, _, classes = draw(rng, 250, 0)
#     fits = [
#         em(x_b[:20], y_b[:20], z_b[:20])[0],
#         em(x_b, y_b, z_b)[0],
#         em(x_b, y_b, 0 * z_b)[0],
#         centroids(y_d, x_d, alpha=1.0),
#     ]
#     for values, fitted in zip(rows.values(), fits, strict=True):
#         values.append(accuracy(fitted, new, classes))
# for name, values in rows.items():
#     print(f"{name}: {np.mean(values):.1%}")
# ```
#
# ```text
# a: 5 positive: 51.6%
# b: and 240 negative: 74.9%
# c: and 240 unlabelled: 72.3%
# d: 65: 77.8%
# ```
#
# A negative label is worth little by itself: most of the gain is from the words of 240 more
# documents, and would be had without any label on them. The labels add two or three points, half of
# what is missing to 65 whole labels a class.
# </details>
