# %% [markdown]
# # 3. Discriminant analysis with wrong labels (Bootkrajang and Kabán 2011)
#
# **You will be able to** extend normal discriminant analysis by a model of wrong labels, fit it by
# EM in ten lines, and read one table of pairs of labels in two ways without mixing them up.
#
# **Question:** volunteers note the species of birds whose wing and beak they measure, and three
# notes in ten are wrong. What do the species really look like?
#
# The paper: "Multi-class Classification in the Presence of Labelling Errors", ESANN 2011. You
# should have met the normal distribution in two dimensions and Bayes' rule.

# %%
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from scipy.special import softmax
from scipy.stats import multivariate_normal as normal
from sklearn.neighbors import KNeighborsClassifier

from inference.nuts import nuts
from nbmodels import Priors, RobustNDA, Solver
from nbmodels.papers import bootkrajang2011

jax.config.update("jax_enable_x64", True)  # numbers are compared to many digits below
fast = bool(os.environ.get("NBMODELS_FAST"))  # fewer data sets and draws for a quick test

# %% [markdown]
# ## The data
#
# Three species, wing and beak in units of their own. The noted label $\hat y$ depends on the true
# species y alone. A **noise matrix** says how: row $\hat y$, column y, columns sum to one.

# %%
K = 3
pi = np.array([0.5, 0.3, 0.2])  # shares of the species
mu = np.array([[0.0, 0.0], [2.2, 0.6], [0.6, 2.4]])
Sigma = np.array([[[1.0, 0.5], [0.5, 0.8]], [[0.6, -0.3], [-0.3, 0.9]], [[0.9, 0.0], [0.0, 0.3]]])
rho = np.array(
    [
        # true: 0, 1, 2
        [0.70, 0.30, 0.10],  # noted 0
        [0.25, 0.65, 0.05],  # noted 1
        [0.05, 0.05, 0.85],  # noted 2
    ]
)


def draw(rng, n, noise):
    """Measurements, true species and noted species of n birds."""
    y = rng.choice(K, n, p=pi)
    x = mu[y] + np.einsum("nij,nj->ni", np.linalg.cholesky(Sigma)[y], rng.normal(size=(n, 2)))
    y_hat = (noise.cumsum(0)[:, y] < rng.random(n)).sum(0)
    return x, y, y_hat


x, y, y_hat = draw(np.random.default_rng(0), 400, rho)
centre, scale = x.mean(0), x.std(0)
x = (x - centre) / scale  # what follows is in standard deviations
print(f"wrong notes: {np.mean(y_hat != y):.0%} of {len(x)}")

# %% [markdown]
# ## The story as a picture
#
# Round brackets are hidden, square ones are seen, arrows say what is drawn from what, and
# everything in a box is repeated as often as its corner says. First as the story goes, and then as
# the paper writes it: the arrow between species and note is turned.
#
# ```text
#             ┌───────────────────────── n birds ┐
#   pi ───────┼──▶ ( y ) ────▶ [ note ] ◀────────┼──── rho
#             │      │                           │
#             │      ▼                           │
#             │    [ x ] ◀───────────────────────┼──── mu, Sigma
#             └──────────────────────────────────┘
#
#             ┌───────────────────────── n birds ┐
#   p_hat ────┼──▶ [ note ] ────▶ ( y ) ◀────────┼──── gamma
#             │                     │            │
#             │                     ▼            │
#             │                   [ x ] ◀────────┼──── mu, Sigma
#             └──────────────────────────────────┘
# ```
#
# ## One table, two factorisations
#
# Everything about the notes is in the table $J_{jk} = P(\hat y = j, y = k)$, whose nine cells sum
# to one. It can be cut in two ways:
#
# $$J_{jk} = \underbrace{P(\hat y = j \mid y = k)}_{\rho_{jk}}\, P(y = k)
# = \underbrace{P(y = k \mid \hat y = j)}_{\gamma_{jk}}\, P(\hat y = j).$$
#
# $\rho$ divides J by the sums of its *columns*: of the birds that are k, how many are noted j? It
# describes the volunteers. $\gamma$ divides by the sums of its *rows*: of the birds noted j, how
# many are k? It says what a note is worth, and depends on how frequent the species are. The paper
# takes $\gamma$. (Its sentence before equation (7) calls $\gamma_{jk}$ the probability "that the
# label has flipped from class k to class j". That would be $\rho$; the formula is right.)

# %%
J = rho * pi
with np.printoptions(precision=2, suppress=True):
    print("J, rows noted, columns true:", J, sep="\n")
    print("rho, columns sum to one:", J / J.sum(0), sep="\n")
    print("gamma, rows sum to one:", J / J.sum(1, keepdims=True), sep="\n")

# %% [markdown]
# Most of species 0 is noted as 0 (0.70), and of what is noted 1 four in ten are species 0.
#
# ## The model, with the species summed out
#
# In the paper's letters. The priors are weak; those of $\hat p$ and $\gamma$ say together that J is
# Dirichlet with concentration 3 on the diagonal and 1.5 elsewhere. A Dirichlet table can be cut
# both ways, too, which is why the library, which thinks in $\rho$, can have the same prior.

# %%
table = 1.5 + 1.5 * np.eye(K)


def model():
    p_hat = numpyro.sample("p_hat", dist.Dirichlet(jnp.asarray(table.sum(1))))
    gamma = numpyro.sample("gamma", dist.Dirichlet(jnp.asarray(table)).to_event(1))
    wishart = dist.InverseWishart(5.0, scale_matrix=0.1 * jnp.eye(2))
    Sigma = numpyro.sample("Sigma", wishart.expand((K,)).to_event(1))
    mu = numpyro.sample("mu", dist.MultivariateNormal(jnp.zeros(2), Sigma / 0.01).to_event(1))
    with numpyro.plate("birds", len(x)):
        numpyro.sample("y_hat", dist.Categorical(p_hat), obs=y_hat)
        y = numpyro.sample("y", dist.Categorical(gamma[y_hat]), infer={"enumerate": "parallel"})
        numpyro.sample("x", dist.MultivariateNormal(mu[y], Sigma[y]), obs=x)


# %% [markdown]
# ## EM, derived
#
# Were the species known, everything would be counting and averaging. **E-step:** a bird is of
# species k with probability, by Bayes' rule and equation (4),
#
# $$r_{nk} \propto N(x_n; \mu_k, \Sigma_k)\; \gamma_{\hat y_n k}.$$
#
# **M-step:** the average of the log-likelihood over the unknown species is
#
# $$Q = \sum_{n,k} r_{nk} \bigl[ \log N(x_n; \mu_k, \Sigma_k) + \log \gamma_{\hat y_n k} \bigr]
# + \text{const}.$$
#
# Its first part is the log-likelihood of a normal distribution with weights: the maximum is at the
# weighted mean and covariance, (5) and (6). In the second, collect the birds noted j. With
# $c_{jk} = \sum_{n: \hat y_n = j} r_{nk}$ it is $\sum_{jk} c_{jk} \log \gamma_{jk}$, and under the
# condition that rows sum to one the maximum is at $\gamma_{jk} = c_{jk} / \sum_l c_{jl}$, (7).


# %%
def e_step(x, y_hat, mu, Sigma, gamma):
    logs = np.stack([normal(m, S).logpdf(x) for m, S in zip(mu, Sigma, strict=True)], 1)
    return softmax(logs + np.log(np.maximum(gamma, 1e-300))[y_hat], axis=1)


def m_step(x, y_hat, r):
    size = r.sum(0)
    mu = r.T @ x / size[:, None]
    gap = x[:, None] - mu
    Sigma = np.einsum("nk,nki,nkj->kij", r, gap, gap) / size[:, None, None]
    pairs = np.eye(r.shape[1])[y_hat].T @ r
    return mu, Sigma, pairs / pairs.sum(1, keepdims=True)


def rnda(x, y_hat, rounds=1000):
    """EM begun at the notes, of which four in five are trusted."""
    n_classes = y_hat.max() + 1
    r = 0.8 * np.eye(n_classes)[y_hat] + 0.2 / n_classes
    for _ in range(rounds):
        theta = m_step(x, y_hat, r)
        r = e_step(x, y_hat, *theta)
    return theta


found = rnda(x, y_hat)
believing = m_step(x, y_hat, np.eye(K)[y_hat])  # classical analysis (NDA) takes notes as they are

exact = RobustNDA.published(solver=Solver(method="ml", tol=1e-13, max_iter=20_000)).fit(x, y_hat)
gaps = [np.abs(exact.gamma_ - found[2]).max(), np.abs(exact.means_ - found[0]).max()]
print(f"differences to the library: gamma {gaps[0]:.0e}, means {gaps[1]:.0e}")
assert np.allclose(exact.gamma_, found[2], atol=1e-4)
assert np.allclose(exact.means_, found[0], atol=1e-4)
assert np.allclose(exact.covariances_, found[1], atol=1e-4)

# %% [markdown]
# The library works with $\rho$ and the shares of the species, our code with $\gamma$ and the shares
# of the notes. With maximum likelihood both reach the same table.
#
# ## All answers in one picture
#
# **CAVI** approximates the posterior; **Gibbs** draws species and parameters in turns (in terms of
# $\rho$); **NUTS** follows the gradient of the model above (in terms of $\gamma$) and is turned
# into $\rho$ afterwards.

# %%
priors = Priors(class_alpha=5.0, noise_alpha=1.0, noise_diagonal=2.0)  # the same Dirichlet table
n_draws = 20 if fast else 1000
cavi = RobustNDA.published(solver="vb", priors=priors).fit(x, y_hat)
trees = {
    "CAVI": cavi.posterior("vb", draws=n_draws, correct=False, random_state=0, progress=False),
    "Gibbs": cavi.posterior(
        "gibbs", draws=n_draws, thin=1 if fast else 2, random_state=0, progress=False
    ),
}
rates = {
    name: tree["posterior"]["noise_matrix"].to_numpy().reshape(-1, K, K)
    for name, tree in trees.items()
}
few = 4 if fast else 400
start = {"mu": found[0], "Sigma": found[1], "gamma": 0.9 * found[2] + 0.1 / K}
samples, _ = nuts(
    model,
    jax.random.key(0),
    draws=few,
    warmup=few // 2,
    chains=1 if fast else 2,
    start={name: jnp.asarray(value) for name, value in start.items()},
)
joint = (samples["gamma"] * samples["p_hat"][..., None]).reshape(-1, K, K)
rates["NUTS"] = joint / joint.sum(1, keepdims=True)

# %%
# Figure: Rates of three notes for each of three species: intervals of CAVI, Gibbs and NUTS,
# points of EM, marks of the planted rates.
p_hat = np.bincount(y_hat, minlength=K) / len(x)
by_em = found[2] * p_hat[:, None]
by_em /= by_em.sum(0)
figure, panels = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True, layout="constrained")
looks = {"CAVI": ("-", "0.6"), "Gibbs": ("-", "black"), "NUTS": (":", "black")}
for k, axes in enumerate(panels):
    rows = np.arange(K)
    for shift, (name, (line, color)) in zip((-0.18, 0, 0.18), looks.items(), strict=True):
        low, high = np.quantile(rates[name][:, :, k], [0.05, 0.95], axis=0)
        axes.hlines(rows + shift, low, high, color=color, linestyle=line, linewidth=2, label=name)
    axes.plot(by_em[:, k], rows, "o", color="black", markerfacecolor="white", label="EM")
    axes.plot(rho[:, k], rows, "|", color="0.4", markersize=26, label="planted")
    axes.set_title(f"true species {k}")
    axes.set_xlabel(r"$\rho$, P(noted | true)")
    axes.set_xlim(-0.02, 1)
panels[0].set_yticks(range(K), [f"noted {j}" for j in range(K)])
panels[0].set_ylim(2.5, -0.5)
figure.legend(
    *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False
)
for axes in panels:
    axes.spines[["top", "right"]].set_visible(False)
widths = {n: np.diff(np.quantile(r[:, 0, 1], [0.05, 0.95]))[0] for n, r in rates.items()}
print("width of the interval of P(noted 0 | true 1):", end=" ")
print(", ".join(f"{name} {width:.2f}" for name, width in widths.items()))

# %% [markdown]
# Gibbs and NUTS agree, although one has $\rho$ for its parameters and the other $\gamma$. CAVI is
# narrower: it takes the hidden species and the rates to be independent. EM has no interval at all.
# Two of the nine planted rates, both of the rarest species, lie outside their interval. Of 90 %
# intervals one in ten does so, and the rates of one column go together.
#
# ## The picture to keep
#
# The paper's Figure 1: the true ellipses (solid) and boundaries (dotted) in grey, the estimated
# ones in black. An ellipse holds 86 % of a species. A bird without a note is classified by
# equation (8), that is by the shares $P(y = k) = \sum_j \hat p_j \gamma_{jk}$ and the density.


# %%
# Figure: Birds by wing and beak with true and estimated ellipses and boundaries: those of NDA are
# too large, those of rNDA lie near the true ones.
def score(x, mu, Sigma, shares):
    """Log of the share times the density, for each species."""
    logs = np.stack([normal(m, S).logpdf(x) for m, S in zip(mu, Sigma, strict=True)], -1)
    return logs + np.log(shares)


def classify(x, *theta):
    return score(x, *theta).argmax(-1)


def ellipse(axes, mean, covariance, color):
    """Two standard deviations around the mean."""
    values, vectors = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
    sides = 4 * np.sqrt(values[::-1])
    axes.add_patch(Ellipse(mean, *sides, angle=angle, fill=False, edgecolor=color, linewidth=2))


planted = ((mu - centre) / scale, Sigma / np.outer(scale, scale), pi)
models = {
    "NDA, which believes the notes": (*believing[:2], p_hat),
    "rNDA": (*found[:2], p_hat @ found[2]),
}
grid = np.stack(np.meshgrid(*[np.linspace(-3, 3, 200)] * 2), -1)
figure, panels = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True, layout="constrained")
for axes, (name, (m, S, shares)) in zip(panels, models.items(), strict=True):
    for k, marker in enumerate("o+^"):
        axes.plot(*x[y_hat == k].T, marker, color="0.8", markersize=4, markerfacecolor="none")
    for (mean, covariance, share), color in [(planted, "0.55"), ((m, S, shares), "black")]:
        for k in range(K):
            ellipse(axes, mean[k], covariance[k], color)
        logs = score(grid, mean, covariance, share)
        for k in range(K):
            margin = logs[..., k] - np.delete(logs, k, -1).max(-1)
            axes.contour(*np.moveaxis(grid, 2, 0), margin, [0], colors=color, linestyles=":")
    axes.set_title(name)
    axes.set_xlabel("wing")
    axes.set(xlim=(-3, 3), ylim=(-3, 3))
panels[0].set_ylabel("beak")
fresh, species, _ = draw(np.random.default_rng(1), 5000, rho)
fresh = (fresh - centre) / scale
for name, theta in {**models, "true parameters": planted}.items():
    print(f"{name}: accuracy on new birds {np.mean(classify(fresh, *theta) == species):.1%}")
keys = [Line2D([], [], color=color, linewidth=2) for color in ("0.55", "black")]
keys += [Line2D([], [], linestyle="", marker=m, color="0.6", fillstyle="none") for m in "o+^"]
words = ["true", "estimated", *(f"noted {k}" for k in range(K))]
figure.legend(keys, words, loc="outside lower center", ncols=5, frameon=False)
for axes in panels:
    axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# Believing the notes makes each species a mixture of several: its mean is drawn towards the others
# and its ellipse becomes too large (exercise 3 computes by how much). The boundaries move less than
# the ellipses, so that accuracy alone hides much of the harm.
#
# ## The paper's other figure
#
# Accuracy by noise (Figure 2): data in ten dimensions, four classes that overlap, labels flipped to
# any other class alike, ten repeats. NN is the nearest neighbour, which believes every label.

# %%
# Figure: Accuracy by share of wrong labels: rNDA stays level, NDA falls, the nearest neighbour
# falls in a straight line.


def trial(seed, noise, n):
    drawn = bootkrajang2011.simulate(jax.random.key(seed), n + 1000, 10, 4, 0.5, noise)
    x, y, y_hat = (np.asarray(a) for a in (drawn.x, drawn.y, drawn.y_hat))
    new, truth, x, y_hat = x[n:], y[n:], x[:n], y_hat[:n]
    shares = np.bincount(y_hat, minlength=4) / n
    plain, robust = m_step(x, y_hat, np.eye(4)[y_hat]), rnda(x, y_hat, rounds=60)
    guesses = [
        classify(new, *plain[:2], shares),
        classify(new, *robust[:2], shares @ robust[2]),
        KNeighborsClassifier(1).fit(x, y_hat).predict(new),
    ]
    return [np.mean(guess == truth) for guess in guesses]


noises = [0.0, 0.4] if fast else [0.0, 0.15, 0.3, 0.45, 0.6]
repeats = 1 if fast else 10
scores = np.array([[trial(s, noise, 1000) for s in range(repeats)] for noise in noises])
figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
looks = [("NDA", "s", "--", "0.5"), ("rNDA", "o", "-", "black"), ("NN", "x", ":", "0.5")]
for k, (name, marker, line, color) in enumerate(looks):
    mean, error = scores[:, :, k].mean(1), scores[:, :, k].std(1) / np.sqrt(repeats)
    axes.errorbar(
        noises,
        mean,
        error,
        fmt=marker,
        linestyle=line,
        color=color,
        markerfacecolor="white",
        label=name,
    )
axes.set_xlabel("share of wrong labels")
axes.set_ylabel("accuracy on true classes")
axes.legend(frameon=False, loc="lower left")
for noise, row in zip(noises, scores.mean(1), strict=True):
    print(f"noise {noise:.0%}: NDA {row[0]:.1%}, rNDA {row[1]:.1%}, NN {row[2]:.1%}")
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# With ten features the classes can be found nearly without labels: rNDA loses next to nothing, NDA
# does, and the nearest neighbour repeats its label's errors one by one.
#
# ## Exercises
#
# **1.** The same volunteers go to another colony, where the species have shares 0.2, 0.3 and 0.5.
# Which of $\rho$ and $\gamma$ stays as it is? What is a note "0" worth there, that is P(true 0 |
# noted 0)?
#
# <details><summary>Solution</summary>
#
# $\rho$ describes the volunteers and stays. $\gamma$ follows from it and the shares by Bayes' rule:
#
# ```python
# for shares in (pi, np.array([0.2, 0.3, 0.5])):
#     pairs = rho * shares
#     print(f"shares {shares}: P(true 0 | noted 0) = {pairs[0, 0] / pairs[0].sum():.2f}")
# ```
#
# ```text
# shares [0.5 0.3 0.2]: P(true 0 | noted 0) = 0.76
# shares [0.2 0.3 0.5]: P(true 0 | noted 0) = 0.50
# ```
#
# So learn on one colony and predict for another in terms of $\rho$.
# </details>
#
# **2.** In equation (8) the paper "intends to place a uniform prior" on the shares of the notes,
# $\hat p_j = 1/K$. Which shares of the species follow from the fitted $\gamma$ then, and which from
# the notes' true shares? What does it do to the accuracy on `fresh`?
#
# <details><summary>Solution</summary>
#
# ```python
# for name, notes in [("uniform", np.full(K, 1 / K)), ("as counted", p_hat)]:
#     shares = notes @ found[2]
#     accuracy = np.mean(classify(fresh, *found[:2], shares) == species)
#     print(f"{name}: shares {shares.round(2)}, accuracy {accuracy:.1%}")
# ```
#
# ```text
# uniform: shares [0.42 0.24 0.34], accuracy 86.1%
# as counted: shares [0.48 0.24 0.28], accuracy 86.7%
# ```
#
# Multiplying a $\gamma$ of this colony by shares of another one (here, of none) gives species that
# are nowhere. In (4) to (7) $\hat p$ cancels, so training is not touched.
# </details>
#
# **3.** What does NDA estimate? The birds noted j are a mixture: a share $\gamma_{jk}$ of them is
# of species k. Compute mean and covariance of the group noted 1 from the planted parameters, and
# compare with `believing`. (The covariance of a mixture is the average of the covariances and of
# the squared distances of the means from their average.)
#
# <details><summary>Solution</summary>
#
# ```python
# worth = (J / J.sum(1, keepdims=True))[1]
# mean = worth @ planted[0]
# gap = planted[0] - mean
# covariance = np.einsum("k,kab->ab", worth, planted[1]) + (worth * gap.T) @ gap
# print("mean, in theory: ", mean.round(1), " NDA:", believing[0][1].round(1))
# spread = [np.diag(S).round(1) for S in (covariance, believing[1][1], planted[1][1])]
# print("variances, in theory: ", spread[0], " NDA:", spread[1], " species 1:", spread[2])
# ```
#
# ```text
# mean, in theory:  [ 0.4 -0.3]  NDA: [ 0.3 -0.2]
# variances, in theory:  [1.1 0.7]  NDA: [1.3 0.8]  species 1: [0.4 0.6]
# ```
#
# More data do not help: NDA estimates the mixture ever better.
# </details>
