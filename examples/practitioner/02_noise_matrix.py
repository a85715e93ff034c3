# %% [markdown]
# # 2. Reading a noise matrix and its interval
#
# **You will be able to** read which classes are mistaken for which, how often, and how sure that
# is; and to turn the matrix round: what is a given label worth?
#
# **Question:** which wines are mistaken for which?

# %%
import os

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from nbmodels import NoisyGaussianNB
from nbmodels.posterior import plots

# %% [markdown]
# ## The data
#
# 178 wines from three vines, with 13 chemical measurements (scikit-learn's `load_wine`). We relabel
# some of them: a quarter of the Grignolino is labelled Barolo, and some Barbera Grignolino.

# %%
X, true = load_wine(return_X_y=True)
names = np.array(["Barolo", "Grignolino", "Barbera"])
planted = np.array(
    [
        # true: Barolo, Grignolino, Barbera
        [0.95, 0.25, 0.00],  # labelled Barolo
        [0.05, 0.75, 0.10],  # labelled Grignolino
        [0.00, 0.00, 0.90],  # labelled Barbera
    ]
)
rng = np.random.default_rng(0)
given = np.array([rng.choice(3, p=planted[:, k]) for k in true])

model = NoisyGaussianNB(random_state=0).fit(X, names[given])

# %% [markdown]
# ## One number for each pair of classes
#
# `noise_matrix_` has a row for each given label and a column for each true class. An entry is
# **P(given label | true class)**: of all wines that truly are of the column's class, the share that
# carries the row's label. So every column sums to one, and the diagonal holds the right labels. The
# classes are in the order of `classes_`, which is the alphabet's.

# %%
matrix = pd.DataFrame(model.noise_matrix_, index=model.classes_, columns=model.classes_)
matrix.rename_axis(index="given", columns="true").round(2)

# %% [markdown]
# ## The picture to keep
#
# 178 wines do not determine nine numbers exactly. `posterior()` draws noise matrices that are all
# compatible with the data; the middle 90 % of the draws of an entry are its 90 % credible interval:
# **given the model, the rate lies inside with probability 90 %**. It is written below each entry.

# %%
# Figure: Three by three noise matrix, columns true wines, rows given labels; each cell has a rate
# and its 90 % interval.
draws = 20 if os.environ.get("NBMODELS_FAST") else 500  # fewer draws for a quick test
posterior = model.posterior(draws=draws)
figure, cells = plots.noise_matrix(posterior)
figure

# %% [markdown]
# Read a column from top to bottom: "of the true Grignolino, so many are labelled Barolo, with this
# interval". The table behind the picture has one row an entry. Beside it, what we planted:

# %%
order = {name: k for k, name in enumerate(names)}
cells["planted"] = planted[cells["observed"].map(order), cells["true"].map(order)]
cells["inside"] = (cells["low"] <= cells["planted"]) & (cells["planted"] <= cells["high"])
cells[["true", "observed", "planted", "mean", "low", "high", "inside"]].round(3)

# %% [markdown]
# Two things to notice:
#
# - A planted rate of exactly 0 is never inside, because every draw is above 0. Such an interval
#   says "at most about so much": read its upper end.
# - The rates of one column depend on each other, as they sum to one. Do not combine the lower ends
#   of all of them.

# %% [markdown]
# ## Turned round: what is a label worth?
#
# Whoever holds a bottle *labelled* Barolo asks something else: is it one? That is
# **P(true class | given label)**, and it depends on how frequent the classes are, by Bayes' rule.
# In `inverse_noise_matrix_` the columns are given labels.

# %%
inverse = pd.DataFrame(model.inverse_noise_matrix_, index=model.classes_, columns=model.classes_)
inverse.rename_axis(index="true", columns="given").round(2)

# %% [markdown]
# Do not confuse the two: most true Barolo is labelled Barolo, and still a good part of what is
# labelled Barolo is Grignolino.
#
# ## Exercises
#
# **1.** How many of the 178 wines are Grignolino labelled Barolo? Compute the expected number from
# `noise_matrix_` and `class_prior_` (the shares of the true classes), and compare with the truth.
#
# <details><summary>Solution</summary>
#
# P(true and given) = P(true) x P(given | true), times the number of wines.
#
# ```python
# share = dict(zip(model.classes_, model.class_prior_))
# expected = len(X) * share["Grignolino"] * matrix.loc["Barolo", "Grignolino"]
# print(f"expected: {expected:.1f}")
# print(f"in truth: {np.sum((true == 1) & (given == 0))}")
# ```
#
# ```text
# expected: 16.3
# in truth: 17
# ```
# </details>
#
# **2.** Is Grignolino mislabelled more often than Barbera? Answer with a probability: the share of
# posterior draws in which it is. (`posterior["posterior"]["noise_matrix"]` has dimensions `chain`,
# `draw`, `observed_class` and `true_class`.)
#
# <details><summary>Solution</summary>
#
# ```python
# rates = posterior["posterior"]["noise_matrix"]
# right = {name: rates.sel(observed_class=name, true_class=name) for name in names}
# probability = float((right["Grignolino"] < right["Barbera"]).mean())
# print(f"P(Grignolino is mislabelled more often) = {probability:.2f}")
# ```
#
# ```text
# P(Grignolino is mislabelled more often) = 0.98
# ```
#
# Compare draws in pairs like this. Whether two intervals overlap is a worse guide.
# </details>
#
# **3.** If somebody *counted* the labels of all true Grignolino, the 90 % interval of a rate p
# would have a half width of about $1.64 \sqrt{p (1 - p) / m}$, where m is their number. Compare
# with the half width of the model's interval for P(Barolo | Grignolino). What makes the difference?
#
# <details><summary>Solution</summary>
#
# ```python
# cell = cells.query("true == 'Grignolino' and observed == 'Barolo'").iloc[0]
# m, p = np.sum(true == 1), cell["mean"]
# print(f"if the true classes were known: {1.64 * np.sqrt(p * (1 - p) / m):.3f}")
# print(f"by the model:                   {(cell['high'] - cell['low']) / 2:.3f}")
# ```
#
# ```text
# if the true classes were known: 0.083
# by the model:                   0.089
# ```
#
# They are nearly the same: the measurements tell these vines apart so well that the model knows
# nearly every true class. What remains is the luck of 71 wines. Where features tell less, the
# model's interval is the wider one.
# </details>
