# %% [markdown]
# # 7. Scoring a model on noisy test labels
#
# **You will be able to** say how accurate a classifier really is when the test labels are wrong in
# places, and to recognise when that cannot be said.
#
# **Question:** the accuracy on the test set is about 80 %. Is that the classifier, or the test set?

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from nbmodels.metrics import noisy_test_scores

# %% [markdown]
# ## The data
#
# Tumours, malignant (0) or benign (1). Four classifiers are trained on right labels, to keep things
# apart. The *test* labels were typed in a hurry: 25 % of the malignant and 10 % of the benign ones
# are wrong, by chance.

# %%
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.6, random_state=0)
noise = np.array([[0.75, 0.10], [0.25, 0.90]])  # rows given labels, columns true classes
rng = np.random.default_rng(0)
given = np.where(rng.random(len(y_test)) < noise[1, y_test], 1, 0)
print(f"{len(given)} test labels, {np.mean(given != y_test):.1%} of them wrong")

classifiers = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(100, random_state=0),
    "naive Bayes": GaussianNB(),
    "tree of depth 1": DecisionTreeClassifier(max_depth=1, random_state=0),
}
predicted = {name: c.fit(X_train, y_train).predict(X_test) for name, c in classifiers.items()}

# %% [markdown]
# ## One score, corrected
#
# A right prediction counts as wrong wherever the label is wrong. If we know how often that happens,
# we can undo it. `noisy_test_scores` does, for accuracy, recall, F1 and the confusion matrix, with
# intervals:

# %%
scores = noisy_test_scores(given, predicted["logistic regression"], noise)
print(scores.sentence)
scores.table().round(3)

# %% [markdown]
# The column `given` is the naive score. The noise matrix is taken as known here. If it is not, fit
# a model to the test set and hand over `model.posterior()`: the interval then contains what is open
# about the noise, too (exercise 3).
#
# ## The picture to keep
#
# All four classifiers: naive, corrected, and true.

# %%
# Figure: Accuracies of classifiers scored on noisy test labels, corrected with intervals, and in
# truth.
draws = 200 if os.environ.get("NBMODELS_FAST") else 1000  # fewer draws for a quick test
figure, axes = plt.subplots(figsize=(7.5, 3), layout="constrained")
for row, (name, guess) in enumerate(predicted.items()):
    found = noisy_test_scores(given, guess, noise, draws=draws)
    accuracy = found.accuracy
    first = row == 0
    axes.plot(
        found.given["accuracy"],
        row,
        "x",
        color="0.5",
        markersize=8,
        label="against the given labels" if first else None,
    )
    axes.plot([accuracy.low, accuracy.high], [row, row], color="black", linewidth=1.5)
    axes.plot(
        accuracy.value, row, "o", color="black", label="corrected, 90 % interval" if first else None
    )
    axes.plot(
        np.mean(guess == y_test),
        row,
        "|",
        color="0.5",
        markersize=20,
        markeredgewidth=2.5,
        label="in truth" if first else None,
    )
    print(f"{name:20s} naive {found.given['accuracy']:.3f}  corrected {accuracy}")
axes.set_yticks(range(len(predicted)), predicted)
axes.invert_yaxis()
axes.set_xlabel("accuracy on the test set")
axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# ## When it cannot be said
#
# The correction assumes that **labels and predictions err independently**: a row that is hard for
# the classifier is not mislabelled more often because of that. Suppose instead that the test labels
# were suggested by an older version of the classifier, and people accepted most suggestions.

# %%
older = make_pipeline(StandardScaler(), LogisticRegression(C=0.001)).fit(X_train, y_train)
suggestion = older.predict(X_test)
accepted = np.where(rng.random(len(y_test)) < 0.8, suggestion, y_test)
estimated = pd.crosstab(accepted, y_test, normalize="columns").to_numpy()  # right on average

guess = older.predict(X_test)
biased = noisy_test_scores(accepted, guess, estimated)
print(f"corrected accuracy: {biased.accuracy}")
print(f"true accuracy:      {np.mean(guess == y_test):.1%}")

# %% [markdown]
# The noise matrix is right, and the corrected score is far too good: label and prediction share
# their errors. Here a warning says so, since predictions agree with more labels than the matrix
# allows. Often the test set alone shows nothing. Some checked rows, drawn at random, do; give their
# true classes as `trusted=`:

# %%
rows = np.random.default_rng(0).choice(len(y_test), 120, replace=False)
checked = {int(row): int(y_test[row]) for row in rows}
tested = noisy_test_scores(accepted, guess, estimated, trusted=checked)
print(tested.sentence)

# %% [markdown]
# **The rule: check some test rows.** They test the assumption, and where it fails, they are the
# test set.
#
# ## Exercises
#
# **1.** Two classes, and given labels that are wrong with probability a for class 0 and b for class
# 1, whatever is predicted. A classifier is right with probability r in both classes. What is its
# accuracy against the given labels, if the classes are equally frequent? Try r = 0.95, a = 0.25,
# b = 0.10.
#
# <details><summary>Solution</summary>
#
# Prediction and label agree if both are right or both are wrong: r (1 - a) + (1 - r) a in class 0,
# the same with b in class 1.
#
# ```python
# r, a, b = 0.95, 0.25, 0.10
# print(f"{(r * (1 - a) + (1 - r) * a + r * (1 - b) + (1 - r) * b) / 2:.4f}")
# ```
#
# ```text
# 0.7925
# ```
# </details>
#
# **2.** Take the labels of the beginning (`given`), for which the assumption holds, with the
# logistic regression and its noise matrix. Do the same 120 checked rows (`checked`) reject it
# there?
#
# <details><summary>Solution</summary>
#
# ```python
# by_logistic = predicted["logistic regression"]
# of_given = noisy_test_scores(given, by_logistic, noise, trusted=checked).independence
# print(f"rejected: {not of_given.ok}")
# print(f"p-value of independence: {of_given.p_value:.2f}")
# print(f"p-value of the noise matrix: {of_given.noise_p_value:.2f}")
# ```
#
# ```text
# rejected: False
# p-value of independence: 1.00
# p-value of the noise matrix: 0.96
# ```
#
# Two things are tested: that labels and predictions err independently, and that the noise matrix
# has the right share of wrong labels. Neither p-value is small.
# </details>
#
# **3.** Suppose the noise matrix is not known. Fit `NoisyLogisticRegression` to the test rows and
# their given labels, and hand over its posterior. What happens to the interval?
#
# <details><summary>Solution</summary>
#
# ```python
# from nbmodels import NoisyLogisticRegression
#
# scaled = StandardScaler().fit_transform(X_test)
# model = NoisyLogisticRegression(random_state=0).fit(scaled, given)
# posterior = model.posterior(draws=250, chains=2)
# unknown = noisy_test_scores(given, predicted["logistic regression"], posterior)
# print(f"noise known:   {scores.accuracy}")
# print(f"noise learned: {unknown.accuracy}")
# ```
#
# ```text
# noise known:   97.1% (91.5% to 100.0%)
# noise learned: 95.9% (87.8% to 100.0%)
# ```
#
# What is not known about the noise is not known about the score.
# </details>
