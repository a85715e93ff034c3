# %% [markdown]
# # 2. When half of one class is mislabelled (Denis, Magnan and Ralaivola 2006)
#
# **You will be able to** say when flip rates can be learned from noisy data at all, compute them
# from covariances with a formula, improve them by EM, and estimate how frequent a class is from
# data without any negative label.
#
# **Question:** half of the poisonous mushrooms in a collection are labelled edible, and every fifth
# edible one poisonous. Nobody knows these rates. Can they be found?
#
# The paper: "Efficient learning of naive Bayes classifiers under class-conditional classification
# noise" (CAp 2006, in French). You should have met conditional probability and covariance.

# %%
import os
import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy.special import softmax

from inference.nuts import nuts
from nbmodels import ClassConditionalNB, PositiveUnlabelledNB, Solver, UnlabelledNB, VerdictWarning

jax.config.update("jax_enable_x64", True)  # numbers are compared to many digits below
fast = bool(os.environ.get("NBMODELS_FAST"))  # fewer data sets and draws for a quick test

# %% [markdown]
# ## The data
#
# As in section 5.1 of the paper: ten yes/no traits, independent of each other among the mushrooms
# of one true class y (that is naive Bayes). Class 1 is poisonous, $p = P(y = 1)$. The label of a
# true 0 is flipped with probability $\eta^0 = 0.2$, that of a true 1 with $\eta^1 = 0.5$.


# %%
def draw(rng, n, p, ones, eta):
    """Traits, true classes and labels; ``ones[y, i]`` is P(trait i = 1 | y)."""
    y = (rng.random(n) < p).astype(int)
    x = (rng.random((n, ones.shape[1])) < ones[y]).astype(int)
    flipped = rng.random(n) < np.array(eta)[y]
    return x, y, np.where(flipped, 1 - y, y)


p, eta, m = 0.4, (0.2, 0.5), 10
rng = np.random.default_rng(0)
ones = rng.uniform(0.2, 0.8, (2, m))
x, y, label = draw(rng, 600 if fast else 2000, p, ones, eta)
print(f"labels wrong: {np.mean(label != y):.0%}")
print(f"poisonous: {np.mean(y):.0%}, labelled poisonous: {np.mean(label):.0%}")

# %% [markdown]
# ## The story as a picture
#
# Round brackets are hidden, square ones are seen, arrows say what is drawn from what, and
# everything in a box is repeated as often as its corner says.
#
# ```text
#          ┌───────────────────────────── n mushrooms ┐
#          │                                          │
#   p ─────┼──────▶ ( y ) ──────▶ [ label ] ◀─────────┼──── eta0, eta1
#          │          │                               │
#   ┌──────┼──────────┼── m traits ┐                  │
#   │      │          ▼            │                  │
#   │ P ───┼──────▶ [ x ]          │                  │
#   └──────┼───────────────────────┘                  │
#          └──────────────────────────────────────────┘
# ```
#
# - $y$ is 1 with probability $p$.
# - Trait i is drawn from $P_+^i$ if $y = 1$, and from $P_-^i$ if $y = 0$.
# - The label is $y$, flipped with probability $\eta^y$. It does not look at the traits: no arrow
#   leads from x to the label.

# %% [markdown]
# ## Can it be known at all?
#
# What can be seen is a table of probabilities: of each pattern of traits together with each label.
# Count. With m yes/no traits there are $2^{m+1}$ cells, which sum to one: $2^{m+1} - 1$ free
# numbers. The model has the unknowns $p, \eta^0, \eta^1$ and 2m probabilities of traits.
#
# | traits m | numbers that can be seen | unknowns |
# |---|---|---|
# | 0 | 1 | 3 |
# | 1 | 3 | 5 |
# | 2 | 7 | 7 |
# | 3 | 15 | 9 |
#
# With labels alone, or with one trait, different parameters give the very same table (exercise 1),
# and no method can tell them apart: they are **not identifiable**. From two traits on there is
# hope, up to one thing: call every poisonous mushroom edible and the reverse, and $\eta^0$ turns
# into $1 - \eta^1$. The data are the same. The paper therefore assumes $\eta^0 + \eta^1 < 1$: a
# label is better than its opposite.
#
# ## What gives the noise away: covariances
#
# Among the mushrooms of one *class*, traits are independent. Among those that bear one *label*,
# they are not, since those are a mixture of both classes. In the group labelled 1 let a share
# $\alpha$ truly be of class 1, in the group labelled 0 a share $\beta$. Write $\delta_i$ for the
# difference $P_+^i - P_-^i$ of a trait's probability between the true classes. Then
#
# - the *averages* of the two groups differ by $c_i = (\alpha - \beta)\, \delta_i$;
# - the *covariance* of two traits in the group labelled 1 is
#   $D_{ij} = \alpha (1 - \alpha)\, \delta_i \delta_j$. Within a class it is zero, so all of it
#   comes from the class itself: a coin with probability $\alpha$ and variance
#   $\alpha (1 - \alpha)$, which moves the average of one trait by $\delta_i$ and of the other by
#   $\delta_j$ (the law of total covariance);
# - in the group labelled 0 it is $E_{ij} = \beta (1 - \beta)\, \delta_i \delta_j$.
#
# The unknown $\delta$ can be replaced by what is seen, $\delta_i = c_i / (\alpha - \beta)$. With
# $C_{ij} = c_i c_j$ these are the paper's equations (10) and (11):
#
# $$D_{ij} = a\, C_{ij}, \quad a = \frac{\alpha (1 - \alpha)}{(\alpha - \beta)^2}, \qquad
# E_{ij} = b\, C_{ij}, \quad b = \frac{\beta (1 - \beta)}{(\alpha - \beta)^2}.$$
#
# Two straight lines through the origin, whose slopes hold the answer. Each pair of traits is a
# point:

# %%
# Figure: Covariances of pairs of traits within a label against the product of differences, with
# straight lines through the origin of slopes 1.72 and 1.58.
pairs = np.triu_indices(m, 1)


def slopes(one, zero):
    """Slopes a and b, by least squares through the origin, from the traits of either label."""
    c = one.mean(0) - zero.mean(0)
    C = np.outer(c, c)[pairs]
    D, E = (np.cov(group.T, bias=True)[pairs] for group in (one, zero))
    return C @ D / (C @ C), C @ E / (C @ C)


one, zero = x[label == 1], x[label == 0]
a, b = slopes(one, zero)

c = one.mean(0) - zero.mean(0)
C = np.outer(c, c)[pairs]
D, E = (np.cov(group.T, bias=True)[pairs] for group in (one, zero))

figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
ends = np.array([C.min(), C.max()])
for values, slope, marker, line, name in [
    (D, a, "o", "-", f"labelled poisonous, slope {a:.2f}"),
    (E, b, "x", "--", f"labelled edible, slope {b:.2f}"),
]:
    axes.plot(C, values, marker, color="black", markerfacecolor="white", label=name)
    axes.plot(ends, slope * ends, line, color="0.5")
axes.set_xlabel("product of the differences between labels, C")
axes.set_ylabel("covariance within a label")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# ## The closed form
#
# Solve for $\alpha$ and $\beta$. Write $d = \alpha - \beta$, which is positive if
# $\eta^0 + \eta^1 < 1$. Subtract the two equations:
#
# $$(a - b)\, d^2 = \alpha - \beta - (\alpha^2 - \beta^2) = d\, (1 - \alpha - \beta)
# \quad\Rightarrow\quad \alpha + \beta = 1 - (a - b)\, d.$$
#
# Add them. With $s = \alpha + \beta$, the squares are $\alpha^2 + \beta^2 = (s^2 + d^2) / 2$. So
# twice the sum is $2s - s^2 - d^2 = 1 - (1 - s)^2 - d^2$, and $1 - s$ is known from above:
#
# $$2 (a + b)\, d^2 = 1 - (a - b)^2 d^2 - d^2 \quad\Rightarrow\quad
# d^2 = \frac{1}{1 + 2 (a + b) + (a - b)^2}.$$
#
# The rest is bookkeeping. The share of class 1 among all is $p = \beta + d\, P(\text{label } 1)$,
# equation (8); Bayes' rule gives the flip rates, equation (7); and the averages of the groups are
# unmixed into those of the classes, equation (9).


# %%
def closed_form(a, b, one, zero):
    """p, P(trait = 1 | y) and the flip rates from the two slopes and the two groups."""
    share = len(one) / (len(one) + len(zero))  # P(label 1)
    d = 1 / np.sqrt(1 + 2 * (a + b) + (a - b) ** 2)
    alpha, beta = (1 - (a - b) * d + d) / 2, (1 - (a - b) * d - d) / 2
    p = beta + d * share
    eta = ((1 - alpha) * share / (1 - p), beta * (1 - share) / p)
    plus = ((1 - beta) * one.mean(0) - (1 - alpha) * zero.mean(0)) / d
    minus = (alpha * zero.mean(0) - beta * one.mean(0)) / d
    return p, np.stack([minus, plus]), eta


first = closed_form(a, b, one, zero)
print(f"planted:     p = {p:.2f}, flip rates {eta[0]:.2f} and {eta[1]:.2f}")
print(f"closed form: p = {first[0]:.2f}, flip rates {first[2][0]:.2f} and {first[2][1]:.2f}")

by_library = ClassConditionalNB(estimator="moments").fit(x, label)
print(f"difference to the library: {np.abs(by_library.flip_rates_ - first[2]).max():.0e}")
assert np.allclose(by_library.flip_rates_, first[2], atol=1e-9)
assert np.allclose(by_library.class_prior_[1], first[0], atol=1e-9)

# %% [markdown]
# *The paper's own sums*, (18) and (19), square each noisy $D_{ij}$ and $E_{ij}$ before they are
# added, which makes small covariances look larger than they are; and they leave two roots to choose
# from. Least squares first, and then one formula, is the same in theory and better in small
# samples. It is what the library does.
#
# ## The model, with the class summed out
#
# The closed form takes nothing but pairs of traits. The likelihood takes everything. In NumPyro, in
# the paper's letters, with the priors that the library has by default (a few pseudo-counts):


# %%
def model():
    p = numpyro.sample("p", dist.Beta(2, 2))
    P = numpyro.sample("P", dist.Beta(2, 2).expand((2, m)).to_event(2))  # P_minus, P_plus
    eta0 = numpyro.sample("eta0", dist.Beta(2, 3))
    eta1 = numpyro.sample("eta1", dist.Beta(2, 3))
    with numpyro.plate("mushrooms", len(x)):
        y = numpyro.sample("y", dist.Bernoulli(p), infer={"enumerate": "parallel"})
        numpyro.sample("label", dist.Bernoulli(jnp.where(y == 1, 1 - eta1, eta0)), obs=label)
        numpyro.sample("x", dist.Bernoulli(P[y]).to_event(1), obs=x)


# %% [markdown]
# ## EM, derived
#
# If we knew which labels were flipped, all would be counting. **E-step:** with the current
# parameters, the probability that y = k for a mushroom is, by Bayes' rule,
#
# $$r_k \propto P(y = k)\; P(\text{label} \mid y = k)\; \prod_i P(x^i \mid y = k).$$
#
# (The paper's (20) is $r$ of the class that the label does *not* name: the probability that the
# label was corrupted.) **M-step:** count, every mushroom with weight $r_k$ in class k. That
# maximises the average of the log-likelihood over the unknown classes, and gives (21) to (23): for
# $p$ the share of the weight in class 1, for a trait the weighted share of ones, for $\eta^k$ the
# share of class k's weight whose label is the other one. (Equation (22) as printed lacks the
# division by the weight of the class.)


# %%
def em(x, label, p, ones, eta, rounds=2000):
    for _ in range(rounds):
        of_label = np.array([[1 - eta[0], eta[0]], [eta[1], 1 - eta[1]]])[:, label].T
        log_x = x @ np.log(ones).T + (1 - x) @ np.log(1 - ones).T
        logs = np.log([1 - p, p]) + np.log(of_label) + log_x
        r = softmax(logs, axis=1)  # E-step
        size = r.sum(0)  # M-step
        p, ones = size[1] / len(x), np.clip(r.T @ x / size[:, None], 1e-9, 1 - 1e-9)
        eta = (r[label == 1, 0].sum() / size[0], r[label == 0, 1].sum() / size[1])
    return p, ones, eta, np.logaddexp(*logs.T).sum()


inside = np.clip(first[1], 0.01, 0.99)  # estimates of the closed form may leave [0, 1]
best = em(x, label, first[0], inside, first[2])
limits = Solver(method="ml", tol=1e-13, max_iter=20_000)
exact = ClassConditionalNB.published(solver=limits).fit(x, label)
print(f"planted: p = {p:.2f}, flip rates {eta[0]:.2f} and {eta[1]:.2f}")
print(f"EM:      p = {best[0]:.2f}, flip rates {best[2][0]:.2f} and {best[2][1]:.2f}")
print(f"difference to the library: {np.abs(exact.flip_rates_ - best[2]).max():.0e}")
assert np.allclose(exact.flip_rates_, best[2], atol=1e-4)
assert np.allclose(exact.objective_, best[3], atol=1e-4)

# %% [markdown]
# ## All answers in one picture
#
# How sure are these rates? **CAVI** approximates the posterior, **Gibbs** and **NUTS** draw from
# it: Gibbs by drawing classes and parameters in turns, NUTS by the gradient of the NumPyro model
# above.

# %%
n_draws = 20 if fast else 1000
cavi = ClassConditionalNB.published(solver="vb").fit(x, label)
trees = {
    "CAVI": cavi.posterior(
        "vb", draws=n_draws, chains=2, correct=False, random_state=0, progress=False
    ),
    "Gibbs": cavi.posterior(
        "gibbs", draws=n_draws, thin=1 if fast else 10, random_state=0, progress=False
    ),
}
found = {}
for name, tree in trees.items():
    rho = tree["posterior"]["noise_matrix"].to_numpy().reshape(-1, 2, 2)  # [label, class]
    share = tree["posterior"]["class_prior"].to_numpy().reshape(-1, 2)[:, 1]
    found[name] = (rho[:, 1, 0], rho[:, 0, 1], share)
few = 4 if fast else 500
start = {"p": best[0], "P": jnp.clip(best[1], 0.01, 0.99), "eta0": best[2][0], "eta1": best[2][1]}
samples, _ = nuts(
    model, jax.random.key(0), draws=few, warmup=few // 2, chains=1 if fast else 2, start=start
)
found["NUTS"] = tuple(samples[name].ravel() for name in ("eta0", "eta1", "p"))

# %%
# Figure: Posterior densities of two flip rates and a class share by CAVI, Gibbs and NUTS, with
# EM, the closed form and planted values; CAVI is too narrow.
figure, panels = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
titles = ["edible labelled poisonous", "poisonous labelled edible", "share of poisonous"]
looks = {"CAVI": ("0.55", "--"), "Gibbs": ("black", "-"), "NUTS": ("black", ":")}
for at, (axes, title) in enumerate(zip(panels, titles, strict=True)):
    span = np.quantile(found["Gibbs"][at], [0.001, 0.999])
    for name, (color, line) in looks.items():
        height, edges = np.histogram(found[name][at], 20, range=span, density=True)
        axes.plot((edges[1:] + edges[:-1]) / 2, height, line, color=color, label=name)
    axes.axvline((*exact.flip_rates_, best[0])[at], color="0.6", linewidth=3, label="EM", zorder=0)
    top = axes.get_ylim()[1]
    axes.plot((*first[2], first[0])[at], 0.05 * top, "s", color="black", label="closed form")
    axes.plot(
        (*eta, p)[at], 0.05 * top, "^", color="black", markerfacecolor="white", label="planted"
    )
    axes.set_title(title)
    axes.set_ylim(0, top)
    axes.set_yticks([])
figure.legend(
    *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False
)
for axes in panels:
    axes.spines[["top", "right", "left"]].set_visible(False)
for name, draws in found.items():
    low, high = np.quantile(draws[1], [0.05, 0.95])
    print(f"{name}: poisonous labelled edible, 90 % interval {low:.2f} to {high:.2f}")

# %% [markdown]
# Gibbs and NUTS agree. CAVI is far too narrow: it takes the hidden classes and the parameters to be
# independent, though a larger share of poisonous goes along with more mushrooms put into that
# class. (`posterior("vb")` corrects for this, unless told not to.) EM is near the middle of the
# posterior. The closed form has seen covariances only.
#
# NUTS was started at the result of EM. From elsewhere a chain may end where both classes have each
# other's name and $\eta^0 + \eta^1 > 1$ (exercise 2).
#
# ## P(y = 1) from data without any negative label
#
# Another collection has a drawer of mushrooms that are certainly poisonous, and a drawer in which
# nobody looked. How many of the second are poisonous? This is section 4.2 of the paper, and the
# same formula: group "1" is now the unlabelled drawer, whose share $\alpha$ of class 1 is sought,
# and group "0" the positive one, with $\beta = 1$. The differences of averages are
# $c_i = (p - 1) \delta_i$, the covariances in the unlabelled drawer
# $D_{ij} = p (1 - p)\, \delta_i \delta_j$, so
#
# $$\frac{D_{ij}}{C_{ij}} = \frac{p}{1 - p}:$$
#
# **the slope is the odds of the positive class.** (The paper's equation (16) for this has the two
# products of single probabilities in each other's place, and the sums of (17), taken over all
# values of a trait as the text says, are exactly zero: exercise 3.)

# %%
unlabelled, truth, _ = draw(np.random.default_rng(1), 1000, p, ones, eta)
positive = (rng.random((300, m)) < ones[1]).astype(int)
c = unlabelled.mean(0) - positive.mean(0)
C, D = np.outer(c, c)[pairs], np.cov(unlabelled.T, bias=True)[pairs]
slope = C @ D / (C @ C)
both = np.vstack([positive, unlabelled])
marks = np.repeat(["poisonous", "unknown"], [len(positive), len(unlabelled)])
with warnings.catch_warnings():
    # the checks expect one population; the drawers are two, and no unlabelled row is ever marked
    warnings.simplefilter("ignore", VerdictWarning)
    by_library = PositiveUnlabelledNB(positive="poisonous", estimator="moments").fit(both, marks)
print(f"poisonous in truth:   {truth.mean():.3f}")
print(f"odds {slope:.2f}, hence: {slope / (1 + slope):.3f}")
print(f"the library:          {by_library.class_prior_[0]:.3f}")
assert np.isclose(slope / (1 + slope), by_library.class_prior_[0], atol=1e-6)

# %% [markdown]
# ## The picture to keep
#
# The paper's experiment (Figure 2 and Table 1), with fewer data sets: each time a new target is
# drawn ($p$ between 0.2 and 0.8, all probabilities of traits uniform), and four methods see n
# labels with the noise above. NB is naive Bayes that believes its labels; NB-UNL looks at no label
# at all but to name the classes (a mixture of two classes, from triples of traits; section 2.2).


# %%
# Figure: Error of P(y = 1) and accuracy by number of labels for four methods: EM from the closed
# form is best, naive Bayes on noisy labels worst.
def predicted(x, p, ones):
    """The likelier class of each row, from its traits alone."""
    log_x = x @ np.log(ones).T + (1 - x) @ np.log(1 - ones).T
    return (np.log([1 - p, p]) + log_x).argmax(1)


def trial(seed, n):
    """Error of P(y = 1) and accuracy on 1000 true classes, for each of four methods."""
    rng = np.random.default_rng(seed)
    p, ones = rng.uniform(0.2, 0.8), rng.random((2, m))
    x, y, label = draw(rng, n + 1000, p, ones, eta)
    new, classes, x, label = x[n:], y[n:], x[:n], label[:n]
    one, zero = x[label == 1], x[label == 0]
    plain = np.clip([zero.mean(0), one.mean(0)], 0.01, 0.99)

    # small samples may leave [0, 1]: a slope below 0 is taken for 0, probabilities are clipped
    share, found, rates = closed_form(*np.maximum(slopes(one, zero), 0), one, zero)
    found = np.clip(found, 0.01, 0.99)
    by_em = em(x, label, share, found, np.clip(rates, 0.01, 0.99), rounds=300)

    blind = UnlabelledNB(estimator="moments").fit(x)
    turned = np.mean(blind.predict(x) == label) < 0.5  # it cannot name its classes: labels do
    by_blind = blind.predict(new) != turned
    answers = [
        (label.mean(), predicted(new, label.mean(), plain)),
        (blind.class_prior_[0 if turned else 1], by_blind),
        (share, predicted(new, share, found)),
        (by_em[0], predicted(new, by_em[0], np.clip(by_em[1], 0.01, 0.99))),
    ]
    return [(abs(at - p), np.mean(guess == classes)) for at, guess in answers]


sizes = [200, 1000] if fast else [100, 300, 1000, 2000]
repeats = 1 if fast else 20
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of small samples, in which NB-UNL needs clipping as well
    results = np.array([[trial(seed, n) for seed in range(repeats)] for n in sizes]).mean(1)

figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
methods = [
    ("NB on noisy labels", "x", ":", "0.4"),
    ("NB-UNL, no labels", "s", "--", "0.5"),
    ("closed form", "^", "--", "black"),
    ("EM from the closed form", "o", "-", "black"),
]
for at, (axes, title) in enumerate(
    zip(panels, ["error of P(y = 1)", "accuracy on true classes"], strict=True)
):
    for k, (name, marker, line, color) in enumerate(methods):
        y_values = results[:, k, at]
        axes.plot(
            sizes, y_values, line, marker=marker, color=color, markerfacecolor="white", label=name
        )
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.set_xlabel("number of labels")
    axes.set_title(title)
figure.legend(
    *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
)
for axes in panels:
    axes.spines[["top", "right"]].set_visible(False)
print("accuracy with the most labels: ", end="")
print(", ".join(f"{methods[k][0]} {results[-1, k, 1]:.1%}" for k in range(4)))

# %% [markdown]
# Naive Bayes on noisy labels learns the noise: with more of them its share of class 1 does not come
# nearer. The closed form does, and EM needs a fraction of the data for the same accuracy. NB-UNL
# keeps up surprisingly well with the closed form. In the paper it is far behind: the sums of its
# Algorithm 3 cancel where traits point in opposite directions, and the library recodes the traits
# first. On targets like the paper's, NB-UNL with the sums as printed has an accuracy of 0.823 with
# 2000 labels, the library's one of 0.896, and the paper prints 0.801
# ([Table 1](../REPRODUCTION.md#table-1-figures-1-and-2-artificial-data)).
#
# ## Exercises
#
# **1.** One trait is not enough. Take $p = 0.4$, $\eta = (0.2, 0.5)$, $P_+ = 0.9$, $P_- = 0.3$.
# Compute the four probabilities of trait and label. Then find other parameters, **with no noise at
# all**, that give the very same four.
#
# <details><summary>Solution</summary>
#
# Without noise the label is the class: take the share of each label for $p$, and the share of the
# trait within each label for its probability.
#
# ```python
# def table(p, eta, plus, minus):
#     of_label = np.array([[1 - eta[0], eta[0]], [eta[1], 1 - eta[1]]])  # [class, label]
#     of_trait = np.array([[1 - minus, minus], [1 - plus, plus]])  # [class, trait]
#     return np.einsum("y,yl,yt->lt", [1 - p, p], of_label, of_trait)
#
#
# noisy = table(0.4, (0.2, 0.5), 0.9, 0.3)
# within = noisy[:, 1] / noisy.sum(1)
# clean = table(noisy[1].sum(), (0, 0), within[1], within[0])
# print(noisy.round(3).ravel())
# print(clean.round(3).ravel())
# ```
#
# ```text
# [0.356 0.324 0.104 0.216]
# [0.356 0.324 0.104 0.216]
# ```
# </details>
#
# **2.** Start EM at the mirror image of its solution: $1 - p$, classes exchanged, flip rates
# $(1 - \eta^1, 1 - \eta^0)$. Where does it stay, and with what log-likelihood? What does that mean
# for a sampler's chains?
#
# <details><summary>Solution</summary>
#
# ```python
# mirrored = em(x, label, 1 - best[0], best[1][::-1], (1 - best[2][1], 1 - best[2][0]), rounds=100)
# print(f"flip rates {mirrored[2][0]:.2f} and {mirrored[2][1]:.2f}")
# print(f"log-likelihood {mirrored[3]:.2f}, before {best[3]:.2f}")
# ```
#
# ```text
# flip rates 0.51 and 0.80
# log-likelihood -13993.76, before -13993.76
# ```
#
# The mirror image explains the data just as well, so it is a second top of the likelihood. A chain
# that starts near it stays there, and the average of two such chains means nothing. The assumption
# $\eta^0 + \eta^1 < 1$ must come from outside the data.
# </details>
#
# **3.** The paper's (17) says: sum $D_{ij}$ over all traits i, j and over all their values a, b,
# where $D$ is the covariance of "trait i is a" and "trait j is b". Show with two traits of the
# unlabelled drawer that such a sum is zero, and say why.
#
# <details><summary>Solution</summary>
#
# "Trait i is 0" is one minus "trait i is 1", so its covariance with anything is the same with the
# sign turned. Each value's term is cancelled by the other value's.
#
# ```python
# values = np.column_stack([unlabelled[:, :2] == 0, unlabelled[:, :2] == 1]).astype(float)
# covariance = np.cov(values.T, bias=True)
# four = covariance[np.ix_([0, 2], [1, 3])]
# print(four.round(4).tolist())
# print(f"sum: {abs(four.sum()):.4f}")
# ```
#
# ```text
# [[-0.0099, 0.0099], [0.0099, -0.0099]]
# sum: 0.0000
# ```
#
# The library weights each term by its $C_{ij}$, which has the same sign: that is least squares.
# </details>
#
# **4.** If both rates are the same (and below one half), the best classifier for the noisy labels
# is also the best one for the true classes (section 3 of the paper). Check: train scikit-learn's
# `BernoulliNB` on 5000 labels with rates (0, 0), (0.3, 0.3) and (0.2, 0.5), and score it on true
# classes.
#
# <details><summary>Solution</summary>
#
# A label 1 has probability $(1 - \eta^1) P(1 | x) + \eta^0 P(0 | x)$. With equal rates that exceeds
# a half exactly where $P(1 | x)$ does. With (0.2, 0.5) it never exceeds a half.
#
# ```python
# from sklearn.naive_bayes import BernoulliNB
#
# for rates in [(0, 0), (0.3, 0.3), (0.2, 0.5)]:
#     traits, true, noisy = draw(np.random.default_rng(2), 10_000, p, ones, rates)
#     fitted = BernoulliNB().fit(traits[:5000], noisy[:5000])
#     print(f"rates {rates}: accuracy {fitted.score(traits[5000:], true[5000:]):.1%}")
# ```
#
# ```text
# rates (0, 0): accuracy 80.7%
# rates (0.3, 0.3): accuracy 80.8%
# rates (0.2, 0.5): accuracy 72.3%
# ```
#
# With equal rates it is as good as with right labels. With (0.2, 0.5) it still says 1 at times,
# since it is not the best classifier for these labels: within a label, traits depend on each other.
# </details>
