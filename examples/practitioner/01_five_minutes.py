# %% [markdown]
# # 1. Five minutes with your CSV
#
# **You will be able to** find the rows of a table whose label is probably wrong, and say how far to
# trust the list.
#
# **Question:** which diagnoses in this table are wrong?
#
# You need a table with a column of labels and some columns that have to do with them. No row has to
# be checked beforehand.

# %% [markdown]
# ## A table
#
# A clinic keeps a table of visits. It is simulated here, so that we know which diagnoses are wrong;
# the library does not. Each true diagnosis has typical values, and 10 to 20 % of the diagnoses were
# noted wrongly.

# %%
import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 90 if os.environ.get("NBMODELS_FAST") else 600  # fewer rows for a quick test
names = np.array(["allergy", "cold", "flu"])
true = rng.choice(3, n, p=[0.30, 0.45, 0.25])

table = pd.DataFrame(
    {
        "temperature": rng.normal(np.array([36.7, 37.2, 38.8])[true], 0.5).round(1),
        "days_ill": rng.poisson(np.array([12, 6, 4])[true]),
        "sneezing": np.where(rng.random(n) < np.array([0.9, 0.7, 0.2])[true], "yes", "no"),
        "aches": np.where(rng.random(n) < np.array([0.05, 0.3, 0.9])[true], "yes", "no"),
        "itching": np.where(rng.random(n) < np.array([0.8, 0.1, 0.05])[true], "yes", "no"),
    }
)
# a column a true diagnosis: 10 % of allergies are noted as colds, 20 % of flus, too
noise = np.array([[0.90, 0.05, 0.00], [0.10, 0.90, 0.20], [0.00, 0.05, 0.80]])
noted = np.array([rng.choice(3, p=noise[:, k]) for k in true])
table["diagnosis"] = names[noted]
table.loc[rng.random(n) < 0.05, "temperature"] = np.nan  # some were not measured

table.to_csv("clinic.csv", index=False)
table.head()

# %% [markdown]
# ## One command
#
# In a terminal this is `nbmodels clean clinic.csv --label diagnosis`. It takes every other column
# as a feature and writes `clinic-corrected.csv`.

# %%
command = [sys.executable, "-m", "nbmodels.cli", "clean", "clinic.csv", "--label", "diagnosis"]
done = subprocess.run([*command, "--overwrite"], capture_output=True, text=True, check=True)
print(done.stdout)

# %% [markdown]
# How to read this, from the top:
#
# - **The share of wrong labels**, with an interval, under two assumptions: that unclear cases are
#   mislabelled no more often than clear ones, and that similar patients always have the same
#   disease. Which of them is right cannot always be seen in a table: notebook 6 is about that.
# - **The noise matrix.** Its columns are true classes: each says how patients with this disease
#   were noted. Below each entry stands its 90 % interval. Notebook 2 is about that.
# - **Labels to check first.** Start checking there. The command counts rows from 1, Python from
#   0: row 42 here is row 41 below.

# %% [markdown]
# ## The same in Python
#
# The command chose `NoisyMixedNB`, the estimator for columns of different kinds. It follows
# scikit-learn's interface.

# %%
from nbmodels import NoisyMixedNB

X, y = table.drop(columns="diagnosis"), table["diagnosis"]
model = NoisyMixedNB(missing_values=np.nan, random_state=0).fit(X, y)
found = model.corrected_labels()
found.sort_values("rank").head()

# %% [markdown]
# `p_wrong` is the probability that the given label is wrong, and `suggested` the likeliest class.
# The list is only as good as the model. `verdict()` checks the model against the data:

# %%
print(model.verdict().sentence)

# %% [markdown]
# ## The answer
#
# Here, unlike in life, the truth is known.

# %%
wrong = noted != true
changed = (found["suggested"] != found["given"]).to_numpy()
print(f"wrong diagnoses in the table:      {wrong.sum()} of {n}")
print(f"labels that the model changes:     {changed.sum()}")
print(f"... of which were wrong:           {(changed & wrong).sum()}")
print(f"right labels before the model:     {np.mean(~wrong):.1%}")
print(f"right labels after the model:      {np.mean(found['suggested'] == names[true]):.1%}")

# %% [markdown]
# ## The picture to keep
#
# Rows from the most to the least doubtful. Nearly all wrong labels stand at the left: who checks
# the table in this order finds them first.

# %%
# Figure: Rows by rank against P(label is wrong): the curve falls from 1 to 0, and nearly all
# wrong labels are at its left end.
order = np.argsort(found["rank"].to_numpy())
p_wrong, is_wrong = found["p_wrong"].to_numpy()[order], wrong[order]
rank = np.arange(1, n + 1)
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.plot(rank, p_wrong, color="0.6", linewidth=1, zorder=1)
axes.scatter(
    rank[~is_wrong], p_wrong[~is_wrong], s=14, c="white", edgecolors="0.6", label="label is right"
)
axes.scatter(rank[is_wrong], p_wrong[is_wrong], s=22, c="black", label="label is wrong")
axes.set_xlabel("rank of the row, most doubtful first")
axes.set_ylabel("P(label is wrong), by the model")
axes.legend(frameon=False)
axes.set_title("Doubtful labels first", loc="left")
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# ## Exercises
#
# **1.** You have time to check 60 rows. How many wrong labels do you find if you check the 60 most
# doubtful ones, and how many if you check 60 rows at random?
#
# <details><summary>Solution</summary>
#
# ```python
# first = found["rank"].to_numpy() <= 60
# print(f"most doubtful: {wrong[first].sum()} of 60")
# print(f"at random:     {60 * wrong.mean():.0f} of 60 on average")
# ```
#
# ```text
# most doubtful: 60 of 60
# at random:     8 of 60 on average
# ```
#
# The ranking is worth several times as many checks.
# </details>
#
# **2.** `p_wrong` claims to be a probability. Check it: of the rows with a `p_wrong` between 0.2
# and 0.8, how many are wrong, and how many did the model expect?
#
# <details><summary>Solution</summary>
#
# ```python
# p = found["p_wrong"].to_numpy()
# unsure = (p > 0.2) & (p < 0.8)
# print(f"{unsure.sum()} rows, {p[unsure].sum():.1f} expected wrong, {wrong[unsure].sum()} are")
# ```
#
# ```text
# 26 rows, 11.6 expected wrong, 13 are
# ```
#
# A sum of probabilities is the expected number. The two agree up to chance: with so few rows, a
# difference of three or four is nothing unusual.
# </details>
#
# **3.** The 30 most doubtful rows were checked by a doctor. Give the true labels to `fit` as
# `trusted=` (a mapping from row to label) and see whether the *other* rows become better.
#
# <details><summary>Solution</summary>
#
# ```python
# rows = np.flatnonzero(found["rank"].to_numpy() <= 30)
# checked = {int(row): names[true[row]] for row in rows}
# again = NoisyMixedNB(missing_values=np.nan, random_state=0).fit(X, y, trusted=checked)
# others = np.setdiff1d(np.arange(n), rows)
# for name, fitted in [("without checks", model), ("with 30 checks", again)]:
#     suggested = fitted.corrected_labels()["suggested"].to_numpy()
#     print(f"{name}: {np.mean(suggested[others] == names[true[others]]):.1%} of the others right")
# ```
#
# ```text
# without checks: 96.3% of the others right
# with 30 checks: 96.3% of the others right
# ```
#
# Most of these labels were so surely wrong that the doctor told the model little that it did not
# expect. Checks help more where the model is unsure (notebook 3).
# </details>
