# %% [markdown]
# # 5. Annotators, and language models, who disagree
#
# **You will be able to** turn several people's votes into one label an item, see whose votes are
# worth how much, and notice when two of your annotators are really one.
#
# **Question:** whom should I believe?

# %%
import os
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nbmodels import DawidSkene

# %% [markdown]
# ## The data
#
# Reviews are to be labelled negative, neutral or positive. Five people label 70 % of them each. A
# sixth one earns money by clicking "positive" nearly always. A language model labels all of them
# and is right in 80 % of the cases. Nobody knows the truth.

# %%
rng = np.random.default_rng(1)
n = 100 if os.environ.get("NBMODELS_FAST") else 400  # fewer reviews for a quick test
names = np.array(["negative", "neutral", "positive"])
true = rng.choice(3, n, p=[0.35, 0.25, 0.40])


def voter(right):
    """Votes that are right with this probability, and otherwise one of the other classes."""
    return np.where(rng.random(n) < right, true, (true + rng.integers(1, 3, n)) % 3)


people = {"Ana": 0.92, "Ben": 0.85, "Cem": 0.65, "Dua": 0.80, "Eva": 0.85}
votes = {name: voter(right) for name, right in people.items()}
votes["clicker"] = np.where(rng.random(n) < 0.9, 2, rng.integers(3, size=n))
votes["model A"] = voter(0.80)
seen = {w: rng.random(n) < (1.0 if w == "model A" else 0.7) for w in votes}

table = pd.concat(
    [
        pd.DataFrame({"task": np.flatnonzero(seen[w]), "worker": w, "label": names[v[seen[w]]]})
        for w, v in votes.items()
    ],
    ignore_index=True,
)
print(f"{len(table)} votes on {n} reviews")
table.sample(4, random_state=0)

# %% [markdown]
# ## Majority, and better than majority
#
# A majority vote counts the clicker as much as Ana. `DawidSkene` learns a noise matrix for each
# worker from how they agree with the others, and weighs votes by it.

# %%
crowd = DawidSkene(random_state=0).fit(table)
labels = crowd.corrected_labels()  # `given` is the majority, `suggested` the model's label
truth = names[true[labels["row"]]]
print(f"majority vote: {np.mean(labels['given'] == truth):.1%} right")
print(f"Dawid-Skene:   {np.mean(labels['suggested'] == truth):.1%} right")

# %% [markdown]
# ## The picture to keep
#
# `worker_report()` gives what each worker's votes are worth: the expected share of right ones with
# its 90 % interval, and a spammer score. It is 0 for votes that always name the class, and rises
# faster than the share of wrong votes: with three classes it is 0.28 where 10 % of the votes are
# wrong at random, and 0.51 where 20 % are. It is 1 for votes that do not depend on the class.
# Suspect those near 1.
#
# Note the clicker: about 40 % of its votes are right, since about 40 % of the reviews are
# positive. If 90 % of the reviews were positive, about 84 % of its votes would be right: accuracy
# alone does not show a spammer.

# %%
# Figure: Share of right votes of seven workers with 90 % intervals and true shares; spammer
# scores at the right, that of the clicker the highest.
report = crowd.worker_report()
in_truth = [np.mean(votes[w][seen[w]] == true[seen[w]]) for w in report["worker"]]
rows = np.arange(len(report))
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.hlines(rows, report["low"], report["high"], color="black", linewidth=1.5)
axes.plot(report["accuracy"], rows, "o", color="black", label="expected, 90 % interval")
axes.plot(in_truth, rows, "|", color="0.5", markersize=18, markeredgewidth=2, label="in truth")
for row, score in zip(rows, report["spammer_score"], strict=True):
    axes.text(1.01, row, f"{score:.2f}", va="center")
axes.text(1.01, -0.9, "spammer\nscore", va="center", fontsize=9)
axes.set_yticks(rows, report["worker"])
axes.set_xlim(0.3, 1.0)
axes.invert_yaxis()
axes.set_xlabel("share of right votes")
axes.legend(frameon=False, loc="lower left")
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# ## When two votes are one
#
# A second language model is added. It was trained on the same texts as the first and gives the
# same answer nearly always. So it adds a vote, and hardly any information.

# %%
votes["model B"] = np.where(rng.random(n) < 0.95, votes["model A"], voter(0.80))
seen["model B"] = np.ones(n, bool)
second = pd.DataFrame({"task": np.arange(n), "worker": "model B", "label": names[votes["model B"]]})
more = pd.concat([table, second], ignore_index=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it is looked at below
    fooled = DawidSkene(dependence=0, random_state=0).fit(more)
labels_more = fooled.corrected_labels()
truth_more = names[true[labels_more["row"]]]
print(f"majority vote:           {np.mean(labels_more['given'] == truth_more):.1%} right")
print(f"votes as independent:    {np.mean(labels_more['suggested'] == truth_more):.1%} right")
fooled.worker_report()[["worker", "votes", "accuracy", "low", "high", "copies"]].round(2)

# %% [markdown]
# More votes, worse labels: worse even than the majority's. The models confirm each other on nearly
# every review. The only explanation that Dawid and Skene's model (`dependence=0`) has for so much
# agreement is that both are excellent, and with that it outvotes the people. It takes votes to be
# **independent given the true class**, and these are not. Look at the accuracy that it claims.
#
# By default `DawidSkene` looks for workers who copy from each other before it fits anything, and
# counts what they say together as little more than one vote:

# %%
careful = DawidSkene(random_state=0).fit(more)
labels_careful = careful.corrected_labels()
print(f"Dawid-Skene, by default: {np.mean(labels_careful['suggested'] == truth_more):.1%} right")
careful.worker_report()[["worker", "votes", "accuracy", "low", "high", "copies"]].round(2)

# %% [markdown]
# It names the pair. It can do so as there are others to compare with: where most workers copy, or
# copy less than a third of their votes, votes alone do not tell who is honest. So look at the raw
# agreement yourself: two independent workers, both right in 80 % of the cases,
# agree on about $0.8 \cdot 0.8 + 0.2 \cdot 0.2 / 2 = 0.66$ of the items.

# %%
wide = more.pivot(index="task", columns="worker", values="label")
agreement = pd.DataFrame(
    {
        a: {b: (wide[a] == wide[b])[wide[a].notna() & wide[b].notna()].mean() for b in wide}
        for a in wide
    }
)
agreement.round(2)

# %% [markdown]
# One pair stands out. **The rule: of language models that are related, keep one.** Some checked
# labels say how good the result is; they do not repair it (exercise 2).
#
# ## Labelling functions
#
# Instead of people you may have rules: "contains *refund*: negative". Each has something to say
# about few items only and abstains (-1) elsewhere. `DawidSkene.weak_supervision()` takes their
# outputs as a matrix, a row an item and a column a function; it also uses when a function abstains.

# %%
named = np.repeat([0, 1, 2], 4)  # the class that each of twelve functions names
hits = np.where(true[:, None] == named, 0.5, 0.1)  # how often it does so
outputs = np.where(rng.random(hits.shape) < hits, named, -1)

rules = DawidSkene.weak_supervision(abstain=-1, random_state=0).fit(outputs)
counted = np.stack([(outputs == k).sum(1) for k in range(3)], 1).argmax(1)
print(f"functions that label a review: {(outputs >= 0).sum(1).mean():.1f} on average")
print(f"right by counting: {np.mean(counted == true):.1%}, by the model: ", end="")
print(f"{np.mean(rules.predict() == true):.1%}")

# %% [markdown]
# Where all functions are equally good, as here, counting is hard to beat. The model gains where
# they are not, and it tells you which ones to mend (`rules.worker_report()`). It needs a good
# number of functions: with two or three for each class, count.

# %% [markdown]
# ## Exercises
#
# **1.** How should somebody who clicks "positive" 90 % of the time and otherwise at random look in
# `worker_noise_matrix_` (axes: worker, in the order of `workers_`; given; true)? Look at the
# clicker's matrix.
#
# <details><summary>Solution</summary>
#
# All columns should be equal: what is clicked does not depend on the true class. The row of
# "positive" should hold 0.9 + 0.1 / 3 everywhere.
#
# ```python
# at = list(crowd.workers_).index("clicker")
# print(pd.DataFrame(crowd.worker_noise_matrix_[at], names, names).round(2).to_string())
# ```
#
# ```text
#           negative  neutral  positive
# negative      0.04     0.04      0.04
# neutral       0.03     0.06      0.03
# positive      0.92     0.90      0.94
# ```
# </details>
#
# **2.** You check 40 reviews, drawn at random. Fit the fooled model anew
# (`DawidSkene(dependence=0, random_state=0)`) to all votes, `more`, with `trusted=` (a mapping from
# task to label). Are the other reviews better now? And of the 40 checked ones, how many did the
# fooled model have right before? How near is that to its share of all 400?
#
# <details><summary>Solution</summary>
#
# ```python
# tasks = np.random.default_rng(0).choice(n, 40, replace=False)
# checked = {int(task): names[true[task]] for task in tasks}
# with warnings.catch_warnings(action="ignore"):
#     helped = DawidSkene(dependence=0, random_state=0).fit(more, trusted=checked)
# other = ~np.isin(helped.tasks_, tasks)
# for name, fitted in [("no checks", fooled), ("40 checks", helped)]:
#     print(f"{name}: {np.mean((fitted.predict() == names[true])[other]):.1%} right")
# agree = np.mean(fooled.predict()[tasks] == names[true[tasks]])
# print(f"of the 40 checked reviews, the fooled model had {agree:.0%} right")
# ```
#
# ```text
# no checks: 79.4% right
# 40 checks: 80.6% right
# of the 40 checked reviews, the fooled model had 90% right
# ```
#
# Hardly: what the models say about 40 reviews is corrected, and on the other 360 they still confirm
# each other. The sample judges the labels fairly, but 40 are few: 90 % plus or minus 8 points (its
# 90 % interval, 1.64 standard errors), where 80.5 % of all labels are right. Here the interval
# misses it, as one in ten does: 40 checks can mislead. And it is no cure for votes that depend on
# each other. The cure is to drop one of the two models.
# </details>
#
# **3.** `p_suggested` (in `corrected_labels()`) claims how likely each label is right. Compare its
# mean with the share that is right: for the fooled model, for the same model without the votes of
# model B (`dependence=0`, fitted to `table`), and for the fit by default without them (`crowd`).
#
# <details><summary>Solution</summary>
#
# ```python
# same = DawidSkene(dependence=0, random_state=0).fit(table)
# for name, fit in [("with B", fooled), ("without B", same), ("without B, by default", crowd)]:
#     frame = fit.corrected_labels()
#     share = np.mean(frame["suggested"] == names[true[frame["row"]]])
#     print(f"{name}: claimed {frame['p_suggested'].mean():.1%}, right {share:.1%}")
# ```
#
# ```text
# with B: claimed 98.7%, right 80.5%
# without B: claimed 95.8%, right 95.2%
# without B, by default: claimed 95.7%, right 95.2%
# ```
#
# Without model B the claim is honest. With it, the labels are worse and the confidence is greater:
# that is what dependent votes do. `DawidSkene` supposes that votes depend on each other in part,
# unless they show clearly that they do not, as here: by default its claim is as honest
# (`dependence=`).
# </details>
