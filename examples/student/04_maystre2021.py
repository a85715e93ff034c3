# %% [markdown]
# # 4. Items known by who touches them (Maystre et al. 2021)
#
# **You will be able to** write down a model of users and items, derive its variational updates,
# code them in ten lines, and say where approximate answers differ from exact ones, and why.
#
# **Question:** some podcasts bear the wrong language. Can we find them, if all we know of a podcast
# is who listened to it?
#
# The paper: Maystre, Kumarappan, Bütepage and Lalmas, "Collaborative Classification from Noisy
# Labels", AISTATS 2021. You should have met Bayes' rule and the Dirichlet distribution, which is a
# distribution of shares that sum to one.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy.sparse import csr_array
from scipy.special import digamma, softmax
from scipy.stats import beta as beta_density

from inference.nuts import nuts
from nbmodels import CollaborativeClassifier, Solver
from nbmodels.papers import maystre2021

jax.config.update("jax_enable_x64", True)  # numbers are compared to many digits below
fast = bool(os.environ.get("NBMODELS_FAST"))  # fewer platforms and draws for a quick test

# %% [markdown]
# ## The data
#
# A platform as in section 4 of the paper, in its letters. Item j has a class $v_j$, one of K. User
# i has shares of interest $u_i$ (small $\alpha$: one class takes most of it), draws S classes by
# these shares, and touches that many different items of each class. A label $\hat v_j$ is wrong
# with probability $\delta$, and then any other class alike.


# %%
def draw(rng, N, M, K, S, alpha, delta):
    """Edges (items x users), true classes, and noisy labels of one platform."""
    v = rng.integers(K, size=N)
    u = rng.dirichlet(np.full(K, alpha), M)
    n = rng.multinomial(S, u)  # how many items of each class a user touches
    edges = np.zeros((N, M))
    for k in range(K):
        of_class = np.flatnonzero(v == k)
        order = rng.random((M, len(of_class))).argsort(1).argsort(1)  # every user's own order
        edges[of_class] = (order < n[:, [k]]).T
    wrong = rng.random(N) < delta
    v_hat = np.where(wrong, (v + rng.integers(1, K, N)) % K, v)
    return csr_array(edges), v, v_hat


N, M, K, S, delta = 60, 40, 3, 5, 0.15
edges, v, v_hat = draw(np.random.default_rng(0), N, M, K, S, alpha=0.3, delta=delta)
print(f"{N} podcasts, {M} listeners, {int(edges.sum())} interactions")
print(f"wrong labels: {np.sum(v_hat != v)}")

# %% [markdown]
# ## The story as a picture
#
# Round brackets are hidden, square ones are seen, arrows say what is drawn from what, and
# everything in a box is repeated as often as its corner says. The black square is a factor: it has
# no arrow.
#
# ```text
#             ┌── M users ┐                   ┌───────────── N items ┐
#             │           │                   │                      │
#   alpha ────┼──▶ ( u ) ─┼──────── ■ ────────┼─ ( v ) ────▶ [ v^ ] ◀┼──── delta
#             │           │  for each edge    │                      │
#             └───────────┘                   └──────────────────────┘
# ```
#
# - Each user i has shares $u_i \sim \mathrm{Dirichlet}(\alpha)$.
# - Each item j has a class $v_j$ and a label $\hat v_j$.
# - Each edge between a user and an item is a factor $u_{i v_j}$: large where the user likes the
#   item's class.
#
# The edges are given. The model weighs pairs of $u_i$ and $v_j$, and does not say how a user comes
# to an item (exercise 4 shows what that costs).

# %% [markdown]
# ## The model, with the class summed out
#
# A label alone says $\beta_{jk} = P(v_j = k \mid \hat v_j)$: $1 - \delta$ for the label itself and
# $\delta / (K - 1)$ for every other class (all classes are equally frequent). The paper multiplies
# three kinds of factors, its equation (1):
#
# $$p(u, v) \propto \prod_i \mathrm{Dir}(u_i \mid \alpha) \; \prod_j \beta_{j v_j} \;
# \prod_{(i, j) \in E} u_{i v_j}$$
#
# In NumPyro the shares are sampled, and the class of each item is **enumerated**: the program sums
# over its K values, because samplers such as NUTS cannot move in discrete variables.
#
# $$p(u) \propto \prod_i \mathrm{Dir}(u_i \mid \alpha) \; \prod_j \sum_k \beta_{jk}
# \prod_{i \in N_j} u_{ik}$$
#
# From here on $\alpha = 1$, the paper's choice if nothing is known of the users.

# %%
alpha = 1.0
beta = np.full((N, K), delta / (K - 1))
beta[np.arange(N), v_hat] = 1 - delta
dense = jnp.asarray(edges.toarray())


def model():
    u = numpyro.sample("u", dist.Dirichlet(jnp.full((M, K), alpha)).to_event(1))
    with numpyro.plate("items", N):
        v = numpyro.sample("v", dist.Categorical(beta), infer={"enumerate": "parallel"})
        numpyro.factor("edges", (dense * jnp.log(u).T[v]).sum(-1))


# %% [markdown]
# ## The updates, derived
#
# The posterior $p(u, v)$ has no closed form. **Mean field** takes the nearest distribution in which
# everything is independent, $q(u, v) = \prod_i q(u_i) \prod_j q(v_j)$. "Nearest" is in the
# Kullback-Leibler divergence, and there is one rule for it: to improve one block, average the log
# of the model over all others,
#
# $$\log q(\text{block}) = \mathrm{E}_{\text{all others}} [\log p(u, v)] + \text{const}.$$
#
# Going round all blocks is **CAVI**, coordinate ascent variational inference. The log of (1) is
#
# $$\sum_{i,k} (\alpha - 1) \log u_{ik} + \sum_j \log \beta_{j v_j}
# + \sum_{(i,j) \in E} \log u_{i v_j} + \text{const}.$$
#
# *Users.* Write $\bar\beta_{jk} = q(v_j = k)$. On average over the classes, an edge is worth
# $\sum_k \bar\beta_{jk} \log u_{ik}$. So $\log q(u_i)$ is
# $\sum_k (\alpha - 1 + \sum_{j \in N_i} \bar\beta_{jk}) \log u_{ik}$ and a constant: again a
# Dirichlet, with
#
# $$\bar\alpha_{ik} = \alpha + \sum_{j \in N_i} \bar\beta_{jk}.$$
#
# *Items.* Now the average is over $u_i$. Of a Dirichlet,
# $\mathrm{E} \log u_{ik} = \psi(\bar\alpha_{ik}) - \psi(\sum_l \bar\alpha_{il})$, where $\psi$ is
# the digamma function, a smoothed logarithm. The second term is the same for all k and drops out:
#
# $$\bar\beta_{jk} \propto
# \exp\Bigl(\log \beta_{jk} + \sum_{i \in N_j} \psi(\bar\alpha_{ik})\Bigr).$$
#
# These are lines 3 and 6 of the paper's Algorithm 1. As code:


# %%
def cavi(edges, beta, alpha, passes=100, log_share=digamma):
    q = beta
    for _ in range(passes):
        users = alpha + edges.T @ q
        new = softmax(np.log(beta) + edges @ log_share(users), axis=1)
        settled = np.abs(new - q).max() < 1e-9
        q = new
        if settled:
            break
    return q, users


found, users = cavi(edges, beta, alpha)
print(f"wrong labels: {np.sum(v_hat != v)}, after CAVI: {np.sum(found.argmax(1) != v)}")

# %% [markdown]
# **EM** looks nearly the same. It has one best value of $u_i$ in the place of a distribution. With
# the flat prior that is the share of each class in the user's expected counts, so that $\psi$ gives
# way to a plain logarithm:
#
# $$u_{ik} \propto \sum_{j \in N_i} \bar\beta_{jk} = \bar\alpha_{ik} - 1.$$

# %%
by_em, users_em = cavi(edges, beta, alpha, log_share=lambda a: np.log(a - 1 + 1e-300))

# %% [markdown]
# ## The same by the library
#
# `CollaborativeClassifier.published` is Algorithm 1 as printed; `maystre2021.algorithm_1` is the
# same once more, line by line in loops.

# %%
solver = Solver(method="vb", accelerate=False, max_iter=5000, tol=1e-13)
fitted = CollaborativeClassifier.published(K, delta, alpha, solver=solver).fit(edges.T, v_hat)
loops = maystre2021.algorithm_1(edges.toarray(), beta, np.full((M, K), alpha), iterations=3)
three, _ = cavi(edges, beta, alpha, passes=3)
gap = np.abs(found - fitted.label_posterior_).max()
print(f"ours and the library's, after convergence: {gap:.0e}")
print(f"ours and the loops, after three passes:    {np.abs(three - loops.beta).max():.0e}")
assert np.allclose(found, fitted.label_posterior_, atol=1e-5)
assert np.allclose(three, loops.beta, atol=1e-12)

# %% [markdown]
# ## Four answers in one picture
#
# EM and CAVI approximate. Two samplers are exact in the limit of many draws: **Gibbs** draws the
# classes given the shares and the shares given the classes, in turns (exercise 3); **NUTS** moves
# through the shares by the gradient of the NumPyro model above. They share no code.

# %%
tree = fitted.posterior(
    "gibbs", draws=20 if fast else 2000, chains=2, random_state=0, progress=False
)
by_gibbs = tree["label_posterior"]["p"].to_numpy()
few = 4 if fast else 400
samples, _ = nuts(model, jax.random.key(0), draws=few, warmup=few // 2, chains=1 if fast else 2)
u = samples["u"].reshape(-1, M, K)
by_nuts = softmax(np.log(beta) + np.einsum("nm,dmk->dnk", dense, np.log(u)), axis=-1).mean(0)

# %%
# Figure: Left, P(label is wrong) of the 18 most doubtful podcasts: EM and CAVI are near 0 or 1,
# Gibbs and NUTS agree on values between. Right, the posterior of one listener's share of class 0.
wrong = 1 - np.stack([p[np.arange(N), v_hat] for p in (by_em, found, by_gibbs, by_nuts)])
names = ["EM", "CAVI", "Gibbs", "NUTS"]
shown = np.argsort(-wrong[2])[:18]
listener = int(np.argmax(np.abs(users[:, 0] / users.sum(1) - 0.5) < 0.15))

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 3.8), width_ratios=[3, 2], layout="constrained"
)
looks = [("x", "0.5"), ("s", "0.5"), ("o", "black"), ("+", "black")]
for name, (marker, color), p in zip(names, looks, wrong, strict=True):
    fill = {} if marker in "x+" else {"markerfacecolor": "white"}
    left.plot(p[shown], marker, color=color, label=name, linestyle="none", **fill)
for at, j in enumerate(shown):
    if v_hat[j] != v[j]:
        left.axvspan(at - 0.5, at + 0.5, color="0.9", zorder=0)
left.set_xticks([])
left.set_xlabel("the 18 most doubtful podcasts (grey band: label is wrong)")
left.set_ylabel("P(label is wrong | data)")
left.legend(frameon=False, loc="upper right")

grid = np.linspace(0.005, 0.995, 200)
a, b = users[listener, 0], users[listener, 1:].sum()
draws = tree["posterior"]["users_u"].to_numpy().reshape(-1, M, K)
right.hist(draws[:, listener, 0], 25, range=(0, 1), density=True, color="0.85", label="Gibbs")
right.hist(
    u[:, listener, 0], 25, range=(0, 1), density=True, histtype="step", color="black", label="NUTS"
)
right.plot(grid, beta_density.pdf(grid, a, b), "--", color="black", label="CAVI")
at_em = (users_em - 1)[listener]
right.axvline(at_em[0] / at_em.sum(), color="0.5", linewidth=2, label="EM")
right.set_xlabel(f"share of class 0 in listener {listener}'s interest")
right.set_yticks([])
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
print(f"largest difference, Gibbs and NUTS: {np.abs(by_gibbs - by_nuts).max():.2f}")
print(f"largest difference, Gibbs and CAVI: {np.abs(by_gibbs - found).max():.2f}")

# %% [markdown]
# The two samplers agree. EM is too sure, and CAVI not much less so: both hand every item a nearly
# fixed judgement of its users, though a user of five items is hardly known. Worse, **an item has a
# vote in the judgement of its own users**: its label comes back to it through each of them
# (exercise 1). Averaging over the users, as the samplers do, has no such echo.
#
# ## The paper's main figure
#
# The paper's Figure 2 (left): below some number of users no algorithm recovers all classes, above
# it nearly always; in between is a sharp transition. Here it is made smaller (N = 200 in the place
# of 1000). The rival is **wvRN**, Algorithm 2: an item gets the class that most of its users'
# *other* items are labelled with.


# %%
def prior_of_items(v_hat, K, delta):
    beta = np.full((len(v_hat), K), delta / (K - 1))
    beta[np.arange(len(v_hat)), v_hat] = 1 - delta
    return beta


def wvrn(edges, v_hat, K):
    """Votes of the users' other items; without any an item keeps its label."""
    labels = np.eye(K)[v_hat]
    own = edges.sum(1)[:, None] * labels
    votes = edges @ (edges.T @ labels) - own
    return np.where(votes.any(1), votes.argmax(1), v_hat)


def own_vote_out(edges, beta, alpha, passes=60):
    """Algorithm 1, but an item's users are judged by their other items alone."""
    item, user = edges.nonzero()
    q = beta
    for step in range(passes):
        others = (alpha + edges.T @ q)[user] - q[item]
        votes = np.zeros_like(q)
        np.add.at(votes, item, np.log(others))
        new = softmax(np.log(beta) + votes, axis=1)
        q = new if step < 20 else (q + new) / 2  # late steps are damped, lest they go in circles
    return q


def recovered(edges, v, v_hat, delta):
    """Whether each of four algorithms finds the classes of all items."""
    beta = prior_of_items(v_hat, K=5, delta=delta)
    nearly_flat = prior_of_items(v_hat, K=5, delta=0.799)
    guesses = [
        cavi(edges, beta, 0.5, passes=30)[0].argmax(1),
        cavi(edges, nearly_flat, 0.5, passes=30)[0].argmax(1),
        own_vote_out(edges, beta, 0.5).argmax(1),
        wvrn(edges, v_hat, 5),
    ]
    return [np.all(guess == v) for guess in guesses]


sizes = [400, 2400] if fast else [200, 400, 800, 1200, 1600, 2400, 3600, 5400]
repeats = 1 if fast else 12
panels = {0.1: [], 0.3: []}
for rate, shares in panels.items():
    for size in sizes:
        drawn = [draw(np.random.default_rng(s), 200, size, 5, 5, 0.5, rate) for s in range(repeats)]
        shares.append(np.mean([recovered(*one, rate) for one in drawn], 0))

# %% [markdown]
# ## The picture to keep

# %%
# Figure: Share of platforms whose classes are all recovered, by number of users, at noise 0.1 and
# 0.3: with the own vote left out first, by Algorithm 1 with the true noise never.
lines = {
    "Algorithm 1, true noise": ("o", "-", "0.55"),
    "Algorithm 1, noise said to be 0.799": ("s", "--", "black"),
    "own vote left out": ("^", "-", "black"),
    "wvRN": ("x", ":", "0.4"),
}
figure, both = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True, layout="constrained")
for axes, (rate, shares) in zip(both, panels.items(), strict=True):
    for (name, (marker, line, color)), y in zip(lines.items(), np.transpose(shares), strict=True):
        axes.plot(sizes, y, line, marker=marker, color=color, markerfacecolor="white", label=name)
    axes.axvline(200 * np.log(200) / 5, color="0.8", linewidth=3, zorder=0)
    axes.set_xscale("log")
    axes.set_xticks([200, 500, 1000, 2000, 5000], ["200", "500", "1000", "2000", "5000"])
    axes.minorticks_off()
    axes.set_title(f"noise {rate}")
    axes.set_xlabel("number of users M")
both[0].set_ylabel("P(all classes are recovered)")
figure.legend(
    *both[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
)
for axes in both:
    axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# The grey line is at $N \log N / S$ users: left of it some items have no user at all, and nobody
# can correct their labels (the paper's Theorem 3; exercise 2). The sharp transition of the paper is
# there, further to the right, and at a place of its own for each curve. At noise 0.1 half of the
# platforms are recovered with about 4 times as many users as at the line if the own vote is left
# out, with 6 to 7 times as many by wvRN, and with 11 times as many by Algorithm 1 if it is told a
# noise of 0.799. At noise 0.3 it takes 5 and 15 times as many, and for Algorithm 1 more than the
# picture shows.
#
# **One thing is not as the text of the paper suggests.** Algorithm 1 as printed, with the true
# noise for $\delta$, never recovers everything, however many users there are: the more users, the
# louder the echo of an item's own label. The transition appears if $\delta$ is said to be nearly
# chance (0.8 with five classes), so that an item has next to no vote to begin with. Leaving the own
# vote out takes the echo away at its source: $\delta$ may be what it is, and fewer users are
# enough.
#
# ## Exercises
#
# **1.** One user has touched one item, whose label says class 0; K = 2, $\delta = 0.1$,
# $\alpha = 1$. (a) Integrate $u$ out of $p(u, v)$ by hand: what is the exact P(class 0)? (b) What
# does `cavi` say? (c) What should anybody say?
#
# <details><summary>Solution</summary>
#
# For class k the integral is $\beta_k \int u_k \, du = \beta_k / 2$, the mean of a uniform share
# being a half. The same for both classes, so the exact answer is $\beta_0 = 0.9$: a user who did
# nothing else tells nothing. CAVI lets the item's label teach the user, and the user confirm it:
#
# ```python
# edge, label = csr_array([[1.0]]), np.array([[0.9, 0.1]])
# print(f"CAVI: {cavi(edge, label, 1.0)[0][0, 0]:.3f}")
# print(f"own vote left out: {own_vote_out(edge, label, 1.0)[0, 0]:.3f}")
# ```
#
# ```text
# CAVI: 0.957
# own vote left out: 0.900
# ```
# </details>
#
# **2.** Users choose among items of all classes. Treat the $MS$ interactions as if each met any of
# the N items with probability 1/N. How many items are expected to have no user? For which M is that
# number one? Compare with counts on drawn platforms (N = 200, S = 5).
#
# <details><summary>Solution</summary>
#
# One item is missed by all with probability $(1 - 1/N)^{MS} \approx e^{-MS/N}$; of N items
# $N e^{-MS/N}$ are, which is one at $M = N \log N / S$, here 212.
#
# ```python
# for size in (100, 212, 400):
#     drawn = [draw(np.random.default_rng(s), 200, size, 5, 5, 0.5, 0.1)[0] for s in range(50)]
#     lonely = np.mean([np.sum(one.sum(1) == 0) for one in drawn])
#     print(f"M = {size}: expected {200 * np.exp(-size * 5 / 200):.2f}, counted {lonely:.2f}")
# ```
#
# ```text
# M = 100: expected 16.42, counted 16.64
# M = 212: expected 1.00, counted 1.44
# M = 400: expected 0.01, counted 0.00
# ```
#
# Slightly more are counted than expected: users choose a class first, so that an item of a large
# class is touched less often than others.
# </details>
#
# **3.** Write the Gibbs sampler: draw $u_i$ given all classes (a Dirichlet, as in the update of
# CAVI but with whole counts), then each $v_j$ given all $u$; after 200 rounds average the
# probabilities from which $v_j$ is drawn. Does it agree with the library's?
#
# <details><summary>Solution</summary>
#
# Shares that are Dirichlet are independent Gamma variables divided by their sum. A class is drawn
# by adding Gumbel noise to its log-probability and taking the largest.
#
# ```python
# rng = np.random.default_rng(1)
# state, mean, rounds = v_hat, 0, 3000
# for step in range(200 + rounds):
#     share = rng.gamma(alpha + edges.T @ np.eye(K)[state])
#     share /= share.sum(1, keepdims=True)
#     logs = np.log(beta) + edges @ np.log(share)
#     state = (logs + rng.gumbel(size=logs.shape)).argmax(1)
#     if step >= 200:
#         mean = mean + softmax(logs, axis=1) / rounds
# print(f"largest difference to the library's Gibbs: {np.abs(mean - by_gibbs).max():.2f}")
# ```
#
# ```text
# largest difference to the library's Gibbs: 0.05
# ```
# </details>
#
# **4.** How do samplers fare with *more* users? Integrate all shares out of (1). With $n_{ik}$
# items of class k touched by user i, $\log p(v)$ is, up to a constant,
#
# $$\sum_j \log \beta_{j v_j} + \sum_i \Bigl(\sum_k \log \Gamma(\alpha + n_{ik})
# - \log \Gamma(K \alpha + n_i)\Bigr).$$
#
# Compute it for the true classes and for "all items are of class 0", with 20, 40, 80 and 320 users.
# What do exact methods do in the end?
#
# <details><summary>Solution</summary>
#
# ```python
# from scipy.special import gammaln
#
#
# def log_p(classes, edges, beta):
#     n = edges.T @ np.eye(K)[classes]
#     users = gammaln(alpha + n).sum(1) - gammaln(K * alpha + n.sum(1))
#     return np.log(beta[np.arange(N), classes]).sum() + users.sum()
#
#
# for size in (20, 40, 80, 320):
#     e, truth, label = draw(np.random.default_rng(0), N, size, K, S, 0.3, delta)
#     b = prior_of_items(label, K, delta)
#     one_class = log_p(np.zeros(N, int), e, b)
#     print(f"M = {size}: truth {log_p(truth, e, b):.0f}, all of class 0 {one_class:.0f}")
# ```
#
# ```text
# M = 20: truth -142, all of class 0 -177
# M = 40: truth -239, all of class 0 -264
# M = 80: truth -444, all of class 0 -406
# M = 320: truth -1671, all of class 0 -1305
# ```
#
# With 80 users and more the model prefers that all items be of one class: then each user's interest
# is explained perfectly. Equation (1) is a product of factors and no account of how users come to
# items. In the story a user first chooses a class and then one of its items, each with probability
# 1 over the *size* of the class; (1) leaves that out, and it is what large classes should pay. CAVI
# escapes because it starts at the labels and only climbs to the nearest top. Exact inference in a
# model that is not the story can be worse than approximate inference.
# </details>
