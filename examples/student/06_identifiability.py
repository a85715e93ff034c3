# %% [markdown]
# # 6. What noisy labels can tell, and what they cannot
#
# **You will be able to** say when a noise matrix can be estimated at all, recognise classes that
# have traded names in EM and in sampling, and read what the library does about it.
#
# **Question:** a clerk sorts letters, with mistakes. Can his notes tell how often he is mistaken?
#
# You should have met conditional probability, covariance and maximum likelihood. Two parameter
# values that give every possible data set the same probability cannot be told apart by data,
# however many: the parameters are then **not identifiable**.

# %%
import itertools
import os
import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy.special import logsumexp

from inference.nuts import nuts
from nbmodels import NoisyBernoulliNB, Solver

jax.config.update("jax_enable_x64", True)  # numbers are compared to many digits below
fast = bool(os.environ.get("NBMODELS_FAST"))  # fewer starts and draws for a quick test

# %% [markdown]
# ## 1. One label and nothing else
#
# Letters are of three kinds, with shares $\pi_k = P(\text{true} = k)$. The **noise matrix** R has
# the entries $R_{jk} = P(\text{noted} = j \mid \text{true} = k)$: a column for each true kind, and
# columns sum to one. All that can be seen of a pile of notes is how often each note occurs, and
#
# $$P(\text{noted} = j) = \sum_k R_{jk}\, \pi_k, \quad\text{in short}\quad R \pi.$$
#
# The **log-likelihood** of a pile is the sum of the logarithms of these probabilities, one for each
# note.
#
# Here are two clerks. The first makes mistakes among letters with the shares `pi`. The second never
# makes one (his noise matrix is the identity I), and his letters have the shares $R \pi$.

# %%
K = 3
pi = np.array([0.5, 0.3, 0.2])
R = np.array(
    [
        # true: 0, 1, 2
        [0.75, 0.20, 0.05],  # noted 0
        [0.15, 0.70, 0.15],  # noted 1
        [0.10, 0.10, 0.80],  # noted 2
    ]
)
n = 1000
rng = np.random.default_rng(0)
true = rng.choice(K, n, p=pi)
noted = np.array([rng.choice(K, p=R[:, k]) for k in true])
counts = np.bincount(noted, minlength=K)
for name, matrix, shares in [("mistaken", R, pi), ("faultless", np.eye(K), R @ pi)]:
    print(f"{name:9s} log-likelihood of the notes: {counts @ np.log(matrix @ shares):.6f}")

# %% [markdown]
# The two log-likelihoods are equal, and they are so for any notes: $(R, \pi)$ and $(I, R\pi)$ say
# the same about what can be seen. **From one noisy label alone, the noise cannot be estimated.**
# More notes do not help. (Nor are there only two answers: exercise 1 has infinitely many.)
#
# ## 2. What features add
#
# Let each letter have d = 8 yes/no features: has a stamp, is typed, and so on. Assume that
#
# - given the true kind, the features are independent of each other (naive Bayes);
# - given the true kind, the note does not depend on the features.

# %%
d = 8
p = rng.uniform(0.15, 0.85, (K, d))  # P(feature = 1 | true kind)
X = (rng.random((n, d)) < p[true]).astype(int)

# %% [markdown]
# If the second clerk were right, notes would be true kinds, and among letters that bear *one note*
# the features would be independent: covariances zero, up to chance. If notes are partly wrong,
# letters with one note are a mixture of kinds. Features that differ between kinds then go along
# with each other. So look at the largest covariance of two features among letters of one note, and
# compare with what chance does. Chance: shuffle each column among the letters of that note, which
# makes the features independent and leaves their averages alone.


# %%
def largest_covariance(columns):
    covariances = np.cov(columns.T)
    return np.abs(covariances[np.triu_indices(d, 1)]).max()


for groups, name in [(noted, "noted"), (true, "true ")]:
    for k in range(K):
        group = X[groups == k]
        chance = [largest_covariance(rng.permuted(group, axis=0)) for _ in range(200)]
        found, limit = largest_covariance(group), np.quantile(chance, 0.95)
        print(f"{name} {k}: {found:.3f}, by chance at most {limit:.3f} in 95 % of the cases")

# %% [markdown]
# Among letters with one note the features are dependent. That cannot be if notes are right, and so
# the faultless clerk is out. Among letters of one true kind (only we can see it) there is nothing
# of the kind. The size of these covariances says how impure the groups are, which is how the noise
# can be estimated.
#
# How many features are needed? Count. With m yes/no features and two classes, there are
# $2 \cdot 2^m$ cells, one for each note together with each pattern of features. What can be seen
# are their probabilities. They sum to one, so the last one follows from the others, and
# $2 \cdot 2^m - 1$ are free. Unknown are one share (the other follows), one error rate in each of
# the two columns of R (the rest of a column follows), and for each feature its probability in
# either class:
#
# | features m | numbers that can be seen, $2 \cdot 2^m - 1$ | unknowns, $1 + 2 + 2m$ |
# |---|---|---|
# | 0 | 1 | 3 |
# | 1 | 3 | 5 |
# | 2 | 7 | 7 |
# | 3 | 15 | 9 |
#
# With fewer numbers than unknowns there is no hope. Two features are the least that may do, if they
# differ between the classes. All of it rests on the two assumptions: where they fail, so does the
# estimate.
#
# ## 3. One thing is never known: which class is which
#
# The log-likelihood adds up, over letters, the log of
#
# $$P(\text{noted}_i, x_i) = \sum_k \pi_k\, R_{\text{noted}_i, k}
# \prod_j p_{kj}^{x_{ij}} (1 - p_{kj})^{1 - x_{ij}}.$$
#
# A sum does not depend on the order of its terms. Number the true classes otherwise, that is,
# permute $\pi$, the rows of p and the *columns* of R alike, and nothing changes:


# %%
def log_terms(pi, R, p):
    """``(n, K)`` log-probabilities of a letter's note and features together with each kind."""
    features = X @ np.log(p).T + (1 - X) @ np.log(1 - p).T
    return np.log(pi) + np.log(R[noted]) + features


for order in itertools.permutations(range(K)):
    order = list(order)
    value = logsumexp(log_terms(pi[order], R[:, order], p[order]), axis=1).sum()
    print(f"columns of R in the order {order}: log-likelihood {value:.6f}")

# %% [markdown]
# K classes have K! orders: six equally good answers for three classes, of which one is right. They
# are called **permuted solutions**, and going from one to another is **label switching**.
#
# ## 4. EM from random starts
#
# EM maximises the likelihood step by step, and never lowers it. The E-step computes the probability
# of each kind for each letter from the current parameters, by Bayes' rule: `r` below. The M-step
# computes the parameters as averages over the letters, weighted by these probabilities. (Notebook 1
# derives both.) It needs parameters to start from. We draw them at random.


# %%
def em(rng, rounds=500):
    pi, R = np.full(K, 1 / K), rng.dirichlet(np.ones(K), K).T
    p = rng.uniform(0.25, 0.75, (K, d))
    for _ in range(rounds):
        terms = log_terms(pi, R, p)
        r = np.exp(terms - logsumexp(terms, axis=1, keepdims=True))
        pi = r.mean(0)
        R = np.maximum(np.eye(K)[noted].T @ r / r.sum(0), 1e-12)
        p = np.clip(r.T @ X / r.sum(0)[:, None], 1e-9, 1 - 1e-9)
    return pi, R, p, logsumexp(log_terms(pi, R, p), axis=1).sum()


starts = [em(np.random.default_rng(seed)) for seed in range(4 if fast else 12)]
best = max(start[3] for start in starts)

# %% [markdown]
# ## The picture to keep
#
# The noise matrices that the starts ended with: columns are true classes as EM numbered them, rows
# are notes, darker is more.

# %%
# Figure: Noise matrices of twelve random starts of EM: the same three columns in different
# orders, with equal log-likelihoods.
figure, panels = plt.subplots(2, len(starts) // 2, figsize=(9.5, 4.2), layout="constrained")
for at, (axes, (_, matrix, _, value)) in enumerate(zip(panels.flat, starts, strict=True)):
    axes.imshow(matrix, cmap="Greys", vmin=0, vmax=1)
    for j, k in itertools.product(range(K), range(K)):
        color = "white" if matrix[j, k] > 0.5 else "black"
        axes.text(k, j, f"{matrix[j, k]:.2f}", ha="center", va="center", color=color, fontsize=9)
    axes.set_title(f"start {at}\nlog-lik. {value:.2f}", fontsize=9)
    axes.set_xticks(range(K), range(K))
    axes.set_yticks(range(K), range(K))
for axes in panels[:, 0]:
    axes.set_ylabel("noted")
for axes in panels[-1]:
    axes.set_xlabel("true class, by EM")
orders = {tuple(matrix.argmax(0)) for _, matrix, _, value in starts if best - value < 0.01}
reached = sum(best - value < 0.01 for *_, value in starts)
print(f"{reached} of {len(starts)} starts reach the best log-likelihood, in {len(orders)} orders")

# %% [markdown]
# All have the same log-likelihood and the same columns, in other orders. (On harder data one may
# also end with a *lower* log-likelihood, in a local maximum, from which no small step leads higher.
# Further starts help against that. Nothing helps against permuted solutions: they are all best.)
# Only in one order of six do classes 0, 1 and 2 mean what the clerk writes as 0, 1 and 2: the one
# whose dark cells lie on the diagonal. None of these starts found it.
#
# ## 5. Chains in different modes
#
# The **prior** is a distribution of the parameters that says what is thought of them before any
# data. Times the likelihood, and divided by a constant, it is the **posterior distribution**: what
# is thought of them after the data. A sampler draws parameters from it, each draw by a random step
# from the one before; such a sequence is a **chain**. Several chains are run from different starts
# and compared. Here the prior treats all classes alike, so the posterior has six equally high peaks
# (**modes**), one for each order of the classes. The sampler is called NUTS. It is given the same
# model in the notation of the package NumPyro, which you need not be able to read: three lines with
# flat priors (every noise matrix equally likely) for $\pi$, R and p, then the letters, over whose
# true kind is summed (`enumerate`), as in the formula of part 3. The first draws, while the sampler
# tunes its steps (`warmup`), are thrown away.


# %%
def model():
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(K)))
    columns = numpyro.sample("columns", dist.Dirichlet(jnp.ones((K, K))).to_event(1))
    p = numpyro.sample("p", dist.Beta(jnp.ones((K, d)), 1.0).to_event(2))
    with numpyro.plate("letters", n):
        kind = numpyro.sample("true", dist.Categorical(pi), infer={"enumerate": "parallel"})
        numpyro.sample("noted", dist.Categorical(columns[kind]), obs=noted)
        numpyro.sample("x", dist.Bernoulli(p[kind]).to_event(1), obs=X)


few = 4 if fast else 300
samples, _ = nuts(model, jax.random.key(0), draws=few, warmup=few, chains=4)
draws = np.swapaxes(samples["columns"], -1, -2)  # chain, draw, noted, true

# %% [markdown]
# **R-hat** compares chains. Let W be the average of the variances within chains, and B the variance
# of the chains' means (for m chains, with m - 1 in the denominator). Then
# $\hat R = \sqrt{(W + B) / W}$. It is near 1 if chains agree, and large if they are in different
# places. (Software has refinements of it.)


# %%
# Figure: Traces of four chains of P(noted 0 | true 0): as sampled they stay at different levels,
# with columns renamed they agree.
def r_hat(chains):
    """From an array (chains, draws)."""
    W, B = chains.var(axis=1, ddof=1).mean(), chains.mean(axis=1).var(ddof=1)
    return np.sqrt((W + B) / W)


def renamed(chain):
    """Columns in the order in which each class is noted as itself most often."""
    mean = chain.mean(0)
    best = max(itertools.permutations(range(K)), key=lambda o: np.trace(mean[:, list(o)]))
    return chain[..., list(best)]


in_one_mode = np.stack([renamed(chain) for chain in draws])
figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for axes, (title, found) in zip(
    panels, {"as sampled": draws, "columns renamed": in_one_mode}.items(), strict=True
):
    for number, chain in enumerate(found[..., 0, 0]):
        axes.plot(chain, color=f"C{number}", linewidth=0.8, label=f"chain {number}")
    axes.set_title(f"{title}: R-hat {r_hat(found[..., 0, 0]):.2f}")
    axes.set_xlabel("draw")
    axes.set_ylim(-0.02, 1)
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("P(noted 0 | true 0)")
figure.legend(
    *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
)
with np.printoptions(precision=2, suppress=True):
    print("mean of all draws, as sampled:", draws.mean((0, 1)), sep="\n")
    print("mean of all draws, columns renamed:", in_one_mode.mean((0, 1)), sep="\n")

# %% [markdown]
# Each chain stays in the mode that it found first: between modes lie parameters of tiny
# probability. The first of the two printed means (as sampled) averages classes of different meaning
# and is nobody's noise matrix. It would be wrong, too, had the chains visited all modes equally
# often: every column would then be the same. R-hat finds what is wrong *here*, since chains differ.
# Had all four ended in one and the same permuted mode, it would be 1, and the names would be wrong
# nonetheless.
#
# ## 6. What the library does
#
# It anchors the classes at the given labels: EM starts with "the note is right, most likely", and
# climbs from there. In the solution each class should be noted as itself more often than as any
# other: the noise matrix is then **diagonally dominant** in the sense of this library. Of the
# permuted solutions it is the one with the names in their places. (`published` takes the settings
# of the paper in notebook 1; `alpha=0` and `method="ml"` turn priors off, so that the likelihood
# above is what is maximised.)

# %%
anchored = NoisyBernoulliNB.published(
    alpha=0, noise="full", solver=Solver(method="ml", tol=1e-12, max_iter=5000), random_state=0
).fit(X, noted)
best_start = max(starts, key=lambda start: start[3])
ours = renamed(best_start[1][None])[0]
with np.printoptions(precision=2, suppress=True):
    print("library:", anchored.noise_matrix_, "planted:", R, sep="\n")
gap = np.abs(anchored.noise_matrix_ - ours).max()
print(f"difference to the best random start, renamed: {gap:.0e}")
assert gap < 1e-3
print(f"wrong notes, in truth: {np.mean(noted != true):.1%}")
print(anchored.verdict().sentence)

# %% [markdown]
# The verdict repeats what the estimate rests on: "if errors do not depend on the features". Its
# second share is the answer under another assumption, that similar letters are of one kind, which
# is false here (notebook 6 of the practitioner's path is about the two).
#
# Where no order of the classes makes the matrix diagonally dominant, the library warns, by an
# `IdentifiabilityWarning`. Here is a clerk who writes 1 on most letters of kind 0, and on those of
# kind 1, too:

# %%
careless = R.copy()
careless[:, 0] = [0.25, 0.65, 0.10]
draw = np.random.default_rng(5)
notes = np.array([draw.choice(K, p=careless[:, k]) for k in true])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    doubtful = NoisyBernoulliNB.published(random_state=0).fit(X, notes)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")
with np.printoptions(precision=2, suppress=True):
    print("library:", doubtful.noise_matrix_, sep="\n")

# %% [markdown]
# What the library *cannot* notice is in exercise 3. In short:
#
# - a noisy label alone says nothing about the noise;
# - features that are independent given the class can make the noise identifiable, up to the names,
#   if there are enough of them and they differ between the classes;
# - the names come from an assumption: that each class bears its own label most often. The anchor
#   expresses it, and a few checked labels (`trusted=`) would test it.
#
# ## Exercises
#
# **1.** Of a pile of letters, 38 % are noted "complaint" and the others "order". Suppose the clerk
# never writes "complaint" on an order. How often does he recognise a complaint if half of the
# letters are complaints? If 40 % are? What is the smallest share of complaints that is possible
# under this assumption?
#
# <details><summary>Solution</summary>
#
# P(noted complaint) = P(noted complaint | complaint) P(complaint), so the rate is 0.38 divided by
# the share. A rate is at most one, so the share is at least 38 %.
#
# ```python
# for share in (0.5, 0.4, 0.38):
#     print(f"share {share:.2f}: recognised {0.38 / share:.2f}")
# ```
#
# ```text
# share 0.50: recognised 0.76
# share 0.40: recognised 0.95
# share 0.38: recognised 1.00
# ```
#
# The notes are the same in all cases: every share from 38 % to 100 % has a rate that explains them
# equally well. The assumption gives a limit, not an answer.
# </details>
#
# **2.** Make the table of part 2 for three classes. How many yes/no features are the least that may
# do?
#
# <details><summary>Solution</summary>
#
# Cells: three notes times $2^m$. Unknown: two shares (the third follows), two rates in each of
# three columns of R, and three probabilities for each feature.
#
# ```python
# for m in range(5):
#     print(f"{m} features: {3 * 2**m - 1} numbers that can be seen, {2 + 6 + 3 * m} unknowns")
# ```
#
# ```text
# 0 features: 2 numbers that can be seen, 8 unknowns
# 1 features: 5 numbers that can be seen, 11 unknowns
# 2 features: 11 numbers that can be seen, 14 unknowns
# 3 features: 23 numbers that can be seen, 17 unknowns
# 4 features: 47 numbers that can be seen, 20 unknowns
# ```
#
# Three. Counting gives a necessary condition only: with features that are equal in all classes, no
# number of them suffices, however large.
# </details>
#
# **3.** A joker exchanges "0" and "1" in the notes of our clerk. What is the noise matrix of the
# exchanged notes, in terms of R? Of the six orders of that matrix's columns, which one will the
# library give, and will it warn? Think first, then run the first fit of part 6 on the exchanged
# notes.
#
# <details><summary>Solution</summary>
#
# The joker exchanges the first two *rows* of R. Then kind 0 is noted 1 most often, and kind 1 is
# noted 0. But exchanging the first two *columns* as well, that is, the names of the classes, makes
# the matrix diagonally dominant: 0.70, 0.75 and 0.80 are then on the diagonal. The library sees a
# decent clerk whose kinds are called otherwise, and its estimate is near that matrix, as far as
# 1000 letters tell:
#
# ```python
# joke = np.array([1, 0, 2])[noted]
# with warnings.catch_warnings(record=True) as caught:
#     warnings.simplefilter("always")
#     fooled = NoisyBernoulliNB.published(alpha=0, noise="full", solver="ml").fit(X, joke)
# said = [w for w in caught if w.category.__name__ == "IdentifiabilityWarning"]
# exchanged = R[[1, 0, 2]]
# print("in truth", exchanged, "with columns exchanged, too", exchanged[:, [1, 0, 2]], sep="\n")
# print("library", fooled.noise_matrix_.round(2), sep="\n")
# print(f"warnings about identifiability: {len(said)}")
# ```
#
# ```text
# in truth
# [[0.15 0.7  0.15]
#  [0.75 0.2  0.05]
#  [0.1  0.1  0.8 ]]
# with columns exchanged, too
# [[0.7  0.15 0.15]
#  [0.2  0.75 0.05]
#  [0.1  0.1  0.8 ]]
# library
# [[0.7  0.14 0.23]
#  [0.24 0.74 0.06]
#  [0.06 0.11 0.71]]
# warnings about identifiability: 0
# ```
#
# No warning, and none is possible: the data are exactly those of a clerk who is right most of the
# time, with kinds 0 and 1 the other way round. Ten letters that somebody reads would tell.
# </details>
#
# **4.** Two chains have the means 0.8 and 0.2 of P(noted 0 | true 0), and each has the variance
# 0.0025. Both chains are equally long, and there are two classes. Compute R-hat and the mean of all
# draws. Would you report that mean? If not, what has to be looked at first, and what is reported if
# the second chain is the first with the classes renamed?
#
# <details><summary>Solution</summary>
#
# The variance of the two means, with denominator 2 - 1, is 0.3² + 0.3² = 0.18.
#
# ```python
# W, B = 0.0025, np.var([0.8, 0.2], ddof=1)
# print(f"B {B:.2f}, R-hat {np.sqrt((W + B) / W):.1f}, mean {np.mean([0.8, 0.2]):.1f}")
# ```
#
# ```text
# B 0.18, R-hat 8.5, mean 0.5
# ```
#
# Not the mean, 0.5: no draw is near it. Look first at the other column, P(noted 0 | true 1). If the
# second chain is the first with the classes renamed, its mean there is 0.8, that of the first chain
# is 0.2, and their log-likelihoods are equal. Then rename the classes in the second chain, in which
# they are not noted as themselves most often, and report what both say of P(noted 0 | true 0),
# about 0.8. Otherwise they are no permutations: compare their log-likelihoods, since one of them
# may be in a worse mode.
# </details>
