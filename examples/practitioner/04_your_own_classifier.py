# %% [markdown]
# # 4. Your own classifier
#
# **You will be able to** train any scikit-learn classifier on noisy labels, without changing it.
#
# **Question:** how much better does a nearest-neighbour classifier get if it knows that labels may
# be wrong?

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nbmodels import NoisyLabelClassifier

# %% [markdown]
# ## The data
#
# 569 tumours, malignant (0) or benign (1), with 30 measurements (scikit-learn's
# `load_breast_cancer`). In the training part some labels are flipped, those of malignant tumours
# twice as often. The test part keeps the right labels.

# %%
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.35, random_state=0)


def flipped(share, seed):
    """Training labels of which about this share is wrong."""
    rng = np.random.default_rng(seed)
    rate = share * np.where(y_train == 0, 2, 1) / np.mean(np.where(y_train == 0, 2, 1))
    return np.where(rng.random(len(y_train)) < rate, 1 - y_train, y_train)


given = flipped(0.25, seed=0)

# %% [markdown]
# ## Wrap it
#
# Anything with `fit` and `predict_proba` will do, a pipeline, too. The wrapper trains it in
# cross-validation on the given labels, estimates from its probabilities how labels go wrong, and
# trains it again on the corrected ones, as often as that makes held-out labels likelier.

# %%
plain = make_pipeline(StandardScaler(), KNeighborsClassifier())
wrapped = NoisyLabelClassifier(plain, random_state=0).fit(X_train, given)
plain.fit(X_train, given)
print(f"wrong training labels: {np.mean(given != y_train):.1%}")
print(f"trainings:             {wrapped.n_fits_}")
print(f"test accuracy, plain:   {plain.score(X_test, y_test):.1%}")
print(f"test accuracy, wrapped: {wrapped.score(X_test, y_test):.1%}")

# %% [markdown]
# The wrapper has all the answers that the other estimators have. Its noise matrix, for instance,
# shows that malignant tumours (first column) are mislabelled more often. (Rows are given labels,
# columns true classes: notebook 2.)

# %%
print(wrapped.noise_matrix_.round(2))
wrapped.corrected_labels().sort_values("rank").head()

# %% [markdown]
# ## The picture to keep
#
# One split and one set of flipped labels prove little. So: several shares of wrong labels, each
# drawn five times.

# %%
fast = bool(os.environ.get("NBMODELS_FAST"))  # fewer fits for a quick test
shares, repeats = ([0.25], 2) if fast else ([0.0, 0.1, 0.2, 0.3], 5)
scores = np.zeros((2, len(shares), repeats))
for i, share in enumerate(shares):
    for seed in range(repeats):
        labels = flipped(share, seed)
        scores[0, i, seed] = plain.fit(X_train, labels).score(X_test, y_test)
        fitted = NoisyLabelClassifier(plain, random_state=0).fit(X_train, labels)
        scores[1, i, seed] = fitted.score(X_test, y_test)

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
for found, name, marker, line, shift in [
    (scores[0], "plain", "o", "--", -0.003),
    (scores[1], "wrapped", "s", "-", 0.003),
]:
    at = np.array(shares) + shift
    color = "0.55" if name == "plain" else "black"
    axes.plot(at, found.mean(1), line, color=color, label=f"{name}, mean")
    axes.plot(np.repeat(at, repeats), found.ravel(), marker, color=color, markerfacecolor="white")
axes.set_xticks(shares)
axes.set_xlabel("share of wrong training labels")
axes.set_ylabel("accuracy on right test labels")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
for share, before, after in zip(shares, *scores.mean(2), strict=True):
    print(f"{share:.0%} wrong: plain {before:.1%}, wrapped {after:.1%}")

# %% [markdown]
# The more labels are wrong, the more there is to gain; with right labels there is nothing. A
# classifier that averages over many rows by itself (a linear model, a large forest) gains less than
# one that trusts single rows.
#
# ## Exercises
#
# **1.** Wrap a decision tree with `min_samples_leaf=5` in the place of the neighbours, on `given`.
# Which one gains more?
#
# <details><summary>Solution</summary>
#
# ```python
# from sklearn.tree import DecisionTreeClassifier
#
# tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
# aware = NoisyLabelClassifier(tree, random_state=0).fit(X_train, given)
# tree.fit(X_train, given)
# print(f"plain tree {tree.score(X_test, y_test):.1%}, wrapped {aware.score(X_test, y_test):.1%}")
# ```
#
# ```text
# ```
#
# A single tree with small leaves learns single wrong labels. How much the wrapper helps it varies a
# lot from one set of flipped labels to another: repeat it before you conclude anything.
# </details>
#
# **2.** The ward knows its noise: 36 % of the malignant and 18 % of the benign tumours are
# mislabelled. Give the matrix (rows given, columns true) as `noise=` and compare.
#
# <details><summary>Solution</summary>
#
# ```python
# known = np.array([[0.64, 0.18], [0.36, 0.82]])
# told = NoisyLabelClassifier(plain, noise=known, random_state=0).fit(X_train, given)
# print(f"noise learned: {wrapped.score(X_test, y_test):.1%}")
# print(f"noise known:   {told.score(X_test, y_test):.1%}")
# ```
#
# ```text
# ```
# </details>
#
# **3.** You cannot know the accuracy on right labels in practice. What does the test accuracy of the
# wrapped classifier look like if the *test* labels are flipped in the same way?
#
# <details><summary>Solution</summary>
#
# ```python
# rng = np.random.default_rng(9)
# noisy = np.where(rng.random(len(y_test)) < np.where(y_test == 0, 0.36, 0.18), 1 - y_test, y_test)
# print(f"against right labels: {wrapped.score(X_test, y_test):.1%}")
# print(f"against noisy labels: {wrapped.score(X_test, noisy):.1%}")
# ```
#
# ```text
# ```
#
# A good classifier looks bad against bad labels. Notebook 7 corrects for that.
# </details>
