# %% [markdown]
# # 1. Naive Bayes with wrong labels (Zeng et al. 2022)
#
# **You will be able to** write naive Bayes with wrong labels as a probabilistic program, derive and
# code its EM, and compare it with three other ways to compute.
#
# **Question:** viewers' messages are sorted into three topics by hand, and one label in three is
# wrong. Can a classifier learn from them what it would have learned from right ones?
#
# The paper: Zeng and others, "Improved Naive Bayes with Mislabeled Data", 2022. You should have met
# Bayes' rule and maximum likelihood.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy.special import softmax
from sklearn.metrics import roc_auc_score, roc_curve

from inference.nuts import nuts
from nbmodels import NoisyBernoulliNB, Solver
from nbmodels.papers import zeng2022

jax.config.update("jax_enable_x64", True)  # numbers are compared to many digits below
fast = bool(os.environ.get("NBMODELS_FAST"))  # fewer data sets and draws for a quick test

# %% [markdown]
# ## The data
#
# Simulated as in section 4.1 of the paper, but smaller: K = 3 topics, d = 300 words, N = 600
# messages. $X_{ij}$ is 1 if message i has word j. The observed label is $Y_i$, the true one
# $Y_i^*$.

# %%
K, d, N = (3, 60, 300) if fast else (3, 300, 600)
drawn = zeng2022.simulate(jax.random.key(2), n=N, d=d, K=K, diagonal=(0.6, 0.75))
X, Y, Y_star, rho = (np.asarray(a) for a in (drawn.X, drawn.y_observed, drawn.y_true, drawn.rho))
print(f"wrong labels: {np.mean(Y_star != Y):.0%} of {N}")

# %% [markdown]
# ## The story as a picture
#
# Round brackets are hidden, square ones are seen, arrows say what is drawn from what, and
# everything in a box is repeated as often as its corner says.
#
# ```text
#           ┌──────────────────────────── N messages ┐
#           │                                        │
#   pi ─────┼──────▶ ( Y* ) ──────▶ [ Y ] ◀──────────┼──── rho
#           │          │                             │
#   ┌───────┼──────────┼── d words ┐                 │
#   │       │          ▼           │                 │
#   │ p ────┼──────▶ [ X ]         │                 │
#   └───────┼──────────────────────┘                 │
#           └────────────────────────────────────────┘
# ```
#
# - $Y_i^* = k$ with probability $\pi_k$.
# - Word j occurs in a message of topic k with probability $p_{jk}$, independently of other words.
# - The label is $k_1$ with probability $\rho_{k_1 k_2}$ if the topic is $k_2$, equation (1). It
#   does not depend on the words. Columns of $\rho$ sum to one.
#
# ## The model, with the true label summed out
#
# In the paper's letters. NUTS needs continuous unknowns; `enumerate` sums over $Y^*$. The paper
# maximises the likelihood. Priors are added for the posterior below: weak ones, and for the columns
# of $\rho$ one that expects labels to be right more often than not.


# %%
def model():
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.full(K, 2.0)))
    columns = numpyro.sample("columns", dist.Dirichlet(1.5 + 1.5 * jnp.eye(K)).to_event(1))
    p = numpyro.sample("p", dist.Beta(2.0, 2.0).expand((K, d)).to_event(2))
    with numpyro.plate("i", N):
        y_star = numpyro.sample("Y_star", dist.Categorical(pi), infer={"enumerate": "parallel"})
        numpyro.sample("Y", dist.Categorical(columns[y_star]), obs=Y)
        numpyro.sample("X", dist.Bernoulli(p[y_star]).to_event(1), obs=X)


# %% [markdown]
# ## EM, derived
#
# **E-step.** By Bayes' rule a message is of topic k with probability, equation (7),
#
# $$\gamma_{ik} \propto \pi_k\, \rho_{Y_i k} \prod_j p_{jk}^{X_{ij}} (1 - p_{jk})^{1 - X_{ij}}.$$
#
# **M-step.** Were the topics known, the log-likelihood would be a sum of three parts. Averaged over
# the unknown topics, with weights $\gamma$, it is
#
# $$Q = \sum_{i,k} \gamma_{ik} \Bigl[ \log \pi_k + \log \rho_{Y_i k}
# + \sum_j X_{ij} \log p_{jk} + (1 - X_{ij}) \log (1 - p_{jk}) \Bigr].$$
#
# - $\pi$: maximise $\sum_k (\sum_i \gamma_{ik}) \log \pi_k$ where $\sum_k \pi_k = 1$. A Lagrange
#   multiplier gives shares: $\pi_k = \sum_i \gamma_{ik} / N$.
# - $\rho$: for each column the same problem, with the weights of the messages labelled $k_1$:
#   $\rho_{k_1 k_2} = \sum_{i: Y_i = k_1} \gamma_{i k_2} / \sum_i \gamma_{i k_2}$.
# - $p_{jk}$: setting the derivative to zero gives the weighted share of messages with the word:
#   $p_{jk} = \sum_i \gamma_{ik} X_{ij} / \sum_i \gamma_{ik}$.


# %%
def log_joint(X, pi, p):
    return np.log(pi) + X @ np.log(p) + (1 - X) @ np.log(1 - p)


def m_step(X, Y, gamma):
    size = gamma.sum(0)
    rho = np.maximum(np.eye(len(size))[Y].T @ gamma / size, 1e-300)
    return size / len(X), rho, np.clip(X.T @ gamma / size, 1e-9, 1 - 1e-9)


def inb(X, Y, K, rounds=5000):
    """EM begun at the labels, of which four in five are trusted."""
    gamma = 0.8 * np.eye(K)[Y] + 0.2 / K
    for _ in range(rounds):
        pi, rho, p = m_step(X, Y, gamma)
        gamma = softmax(log_joint(X, pi, p) + np.log(rho)[Y], axis=1)
    return pi, rho, p, gamma


by_em = inb(X, Y, K)
exact = NoisyBernoulliNB.published(
    alpha=0, noise="full", solver=Solver(method="ml", tol=1e-13, max_iter=20_000)
).fit(X, Y)
gaps = np.abs(exact.noise_matrix_ - by_em[1]), np.abs(np.exp(exact.feature_log_prob_.T) - by_em[2])
print("differences to the library: rho {:.0e}, p {:.0e}".format(*(gap.max() for gap in gaps)))
assert max(gap.max() for gap in gaps) < 1e-4
print(f"labels right as given: {np.mean(Y_star == Y):.1%}, ", end="")
print(f"by the largest gamma: {np.mean(by_em[3].argmax(1) == Y_star):.1%}")

# %% [markdown]
# Where EM starts matters. Section 3.5 of the paper starts p at random. Then nothing says which
# topic is which, and EM ends in permuted solutions (notebook 6 shows them). Our start, and the
# library's, is the observed labels. Two slips of the paper besides: equation (4) writes
# $X_{ij} > 1$ for $X_{ij} = 1$, and in appendix .1 (real features) the exponent of the normal
# density lacks its square.
#
# ## All answers in one picture
#
# EM gives one value. **CAVI** (variational Bayes) approximates the posterior by independent parts.
# **Gibbs** draws topics and parameters in turns. **NUTS** follows the gradient of the program above
# and shares no code with the others.

# %%
draws = 20 if fast else 1000
vb = NoisyBernoulliNB.published(solver="vb", alpha=1.0, noise="full").fit(X, Y)
trees = {
    "CAVI": vb.posterior("vb", draws=draws, correct=False, random_state=0, progress=False),
    "Gibbs": vb.posterior("gibbs", draws=draws, chains=2, random_state=0, progress=False),
}
rates = {
    name: tree["posterior"]["noise_matrix"].to_numpy().reshape(-1, K, K)
    for name, tree in trees.items()
}
few = 4 if fast else 200
start = {"pi": by_em[0], "columns": 0.9 * by_em[1].T + 0.1 / K, "p": by_em[2].T.clip(0.02, 0.98)}
samples, _ = nuts(
    model,
    jax.random.key(0),
    draws=few,
    warmup=few // 2,
    chains=1 if fast else 2,
    start={name: jnp.asarray(value) for name, value in start.items()},
)
rates["NUTS"] = np.swapaxes(samples["columns"], -1, -2).reshape(-1, K, K)

# %%
# Figure: Rates of three labels for each of three topics: intervals of CAVI, Gibbs and NUTS,
# points of EM, marks of the planted rates.
figure, panels = plt.subplots(1, K, figsize=(9.5, 3.4), sharey=True, layout="constrained")
looks = {"CAVI": ("-", "0.6"), "Gibbs": ("-", "black"), "NUTS": (":", "black")}
for k, axes in enumerate(panels):
    rows = np.arange(K)
    for shift, (name, (line, color)) in zip((-0.18, 0, 0.18), looks.items(), strict=True):
        low, high = np.quantile(rates[name][:, :, k], [0.05, 0.95], axis=0)
        axes.hlines(rows + shift, low, high, color=color, linestyle=line, linewidth=2, label=name)
    axes.plot(by_em[1][:, k], rows, "o", color="black", markerfacecolor="white", label="EM")
    axes.plot(rho[:, k], rows, "|", color="0.4", markersize=26, label="planted")
    axes.set_title(f"true topic {k}")
    axes.set_xlabel(r"$\rho$, P(label | topic)")
    axes.set_xlim(-0.02, 1)
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_yticks(range(K), [f"label {j}" for j in range(K)])
panels[0].set_ylim(K - 0.5, -0.5)
figure.legend(
    *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False
)
low, high = np.quantile(rates["Gibbs"], [0.05, 0.95], axis=0)
print(f"planted rates in the 90 % intervals of Gibbs: {np.sum((low < rho) & (rho < high))} of 9")
for name, found in rates.items():
    width = np.diff(np.quantile(found, [0.05, 0.95], axis=0), axis=0).mean()
    print(f"{name}: mean width {width:.3f}, mean of rho_00 {found[:, 0, 0].mean():.3f}")

# %% [markdown]
# Gibbs and NUTS draw from one posterior by two programs, and agree. CAVI takes topics and rates
# to be independent; it is a little narrower, and would be more so if words told less of the topics.
# EM lies near the middle of the intervals.
#
# ## The picture to keep
#
# The paper's simulation: K = 5, d = 500, n = 1000, of which 800 are for training, by the interval
# from which the diagonal of $\rho$ is drawn. **NB** believes the labels, **INB** is EM as above,
# **NB-T** knows the true parameters. Accuracy is on true labels of the 200 others. Left: ROC curves
# of one data set, averaged over the classes (the paper's Figure 1). Right: accuracy (its Table 1);
# bars are one standard deviation of eight data sets to either side, crosses the paper's figures,
# means of 100 replicates.


# %%
# Figure: Left, ROC curves of NB, INB and NB-T. Right, accuracy by the diagonal of rho, ours and
# the paper's: NB far below the others where labels are worst.
def replicate(seed, diagonal):
    """True labels of the test rows, and P(topic) there by the three methods."""
    drawn = zeng2022.simulate(jax.random.key(seed), n=1000, diagonal=diagonal)
    X, Y = np.asarray(drawn.X), np.asarray(drawn.y_observed)
    train, test = drawn.train, drawn.test
    plain = m_step(X[train], Y[train], np.eye(5)[Y[train]])
    robust = inb(X[train], Y[train], 5, rounds=60)
    known = [(plain[0], plain[2]), (robust[0], robust[2]), (drawn.pi, drawn.p)]
    scores = [softmax(log_joint(X[test], np.asarray(a), np.asarray(b)), axis=1) for a, b in known]
    return np.asarray(drawn.y_true)[test], scores


intervals = (
    [(0.55, 0.65), (0.75, 0.85)] if fast else [(a, a + 0.1) for a in (0.55, 0.65, 0.75, 0.85)]
)
methods = ["NB", "INB", "NB-T"]
table_1 = {0.55: [75.9, 92.6, 96.9], 0.65: [85.3, 92.7, 96.9], 0.75: [89.2, 93.0, 96.9]}
table_1[0.85] = [91.8, 93.2, 96.9]
runs = {one: [replicate(seed, one) for seed in range(1 if fast else 8)] for one in intervals}
accuracy = np.array(
    [[[np.mean(s.argmax(1) == y) for s in scores] for y, scores in run] for run in runs.values()]
)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
looks = [("s", "--", "0.5"), ("o", "-", "black"), ("^", ":", "0.5")]
y, scores = runs[intervals[0]][0]
grid = np.linspace(0, 1, 200)
for name, score, (_, line, color) in zip(methods, scores, looks, strict=True):
    curves = [np.interp(grid, *roc_curve(y == k, score[:, k])[:2]) for k in range(5)]
    auc = roc_auc_score(np.eye(5)[y], score)
    left.plot(grid, np.mean(curves, axis=0), line, color=color, label=f"{name}, AUC {auc:.3f}")
left.set(
    xlabel="false positive rate", ylabel="true positive rate", title="diagonal in [0.55, 0.65)"
)
left.legend(frameon=False, loc="lower right")
places = np.arange(len(intervals))
theirs = 0.01 * np.array([table_1[round(a, 2)] for a, _ in intervals])
for at, (name, (marker, line, color)) in enumerate(zip(methods, looks, strict=True)):
    mean, spread = accuracy[:, :, at].mean(1), accuracy[:, :, at].std(1)
    right.errorbar(
        places, mean, spread, fmt=marker, linestyle=line, color=color, label=f"{name}, ours"
    )
    right.plot(
        places + 0.12, theirs[:, at], "x", color=color, label="the paper's" if at == 1 else None
    )
right.set_xticks(places, [f"{a:.2f} to {b:.2f}" for a, b in intervals])
right.set(xlabel=r"diagonal of $\rho$", ylabel="accuracy on true labels")
right.legend(frameon=False, loc="lower right")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
for (a, b), ours, paper in zip(intervals, accuracy.mean(1), theirs, strict=True):
    cells = [f"{m} {o:.1%} (paper {q:.1%})" for m, o, q in zip(methods, ours, paper, strict=True)]
    print(f"diagonal {a:.2f} to {b:.2f}:", ", ".join(cells))

# %% [markdown]
# The orderings are those of the paper: INB gains most where labels are worst, and stays below NB-T,
# since 800 messages do not determine 2500 probabilities exactly. INB is within a point of the
# paper. NB is some points better here than there where labels are worst. Most of it is how $\rho$
# is drawn: here its entries off the diagonal are random numbers scaled to the rest of the column.
# Drawn one after the other, errors gather in one or two classes and cost NB more, as in the paper
# ([how rho and p were drawn](../REPRODUCTION.md#why-tables-1-and-5-how-rho-and-p-were-drawn)). The
# paper's NB-T changes with n (96.6, 96.9 and 95.7 % for 500, 1000 and 5000), although NB-T learns
# nothing: its p seems to have been drawn once for each n. Here p is drawn anew in each replicate.
#
# ## Exercises
#
# **1.** Section 3.4 asks what wrong labels do to naive Bayes that believes them. Equation (3): two
# equally frequent classes, a word with $p_{j1} = 0.6$ and $p_{j2} = 0.3$, labels right with
# probability $\rho$ in both. Compute $P(Y = 1 \mid X_j = 1) - P(Y = 2 \mid X_j = 1)$ for
# $\rho$ = 1, 0.8 and 0.55. Can the prediction from this word turn around while $\rho > 1/2$?
#
# <details><summary>Solution</summary>
#
# The true class has the difference $(0.6 - 0.3) / (0.6 + 0.3) = 1/3$. A label keeps a difference up
# to the factor $\rho - (1 - \rho) = 2 \rho - 1$:
#
# ```python
# for right in (1.0, 0.8, 0.55):
#     ours = (2 * right - 1) * (0.6 - 0.3) / (0.6 + 0.3)
#     print(f"rho {right}: {ours:.3f}, library {zeng2022.impact_two_classes(0.6, 0.3, right):.3f}")
# ```
#
# ```text
# rho 1.0: 0.333, library 0.333
# rho 0.8: 0.200, library 0.200
# rho 0.55: 0.033, library 0.033
# ```
#
# It shrinks and never changes its sign: with symmetric errors in two classes, naive Bayes needs
# more data but ends at the same decision (as n grows, for this word).
# </details>
#
# **2.** The likelihood does not change if topics are renumbered. Show it: permute the result of EM
# and compute the log-likelihood of labels and words.
#
# <details><summary>Solution</summary>
#
# ```python
# pi, matrix, p, _ = by_em
# for order in ([0, 1, 2], [1, 2, 0]):
#     terms = log_joint(X, pi[order], p[:, order]) + np.log(matrix[:, order])[Y]
#     print(order, f"{np.logaddexp.reduce(terms, axis=1).sum():.6f}")
# ```
#
# ```text
# [0, 1, 2] -109008.308567
# [1, 2, 0] -109008.308567
# ```
#
# Which is why EM is begun at the labels.
# </details>
#
# **3.** Add a prior to the M-step for p: a Beta(2, 2), as in the model above. Maximise
# $Q + \sum_{jk} \log p_{jk} + \log (1 - p_{jk})$ and say what changes.
#
# <details><summary>Solution</summary>
#
# The derivative has one more word seen and one more not seen, so
# $p_{jk} = (1 + \sum_i \gamma_{ik} X_{ij}) / (2 + \sum_i \gamma_{ik})$: Laplace's smoothing. For
# the $\gamma$ that EM ended with:
#
# ```python
# gamma = by_em[3]
# smoothed = (1 + X.T @ gamma) / (2 + gamma.sum(0))
# moved = np.abs(smoothed - by_em[2])
# print(f"largest change of p {moved.max():.3f}, mean change {moved.mean():.4f}")
# ```
#
# ```text
# largest change of p 0.004, mean change 0.0019
# ```
#
# Little here. With rare words it is what keeps p from 0, where one message rules out a topic.
# </details>
