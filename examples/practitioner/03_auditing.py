# %% [markdown]
# # 3. How many labels are wrong: auditing with 100 checks
#
# **You will be able to** say how many labels of a data set are wrong, with an interval that does
# not depend on any model being right, by checking 100 of them.
#
# **Question:** how many of 1,797 handwritten digits are labelled wrongly?
#
# A model's own answer is only as good as the model (notebook 6). Checked labels need no model. But
# they cost time, so each should tell as much as possible: `audit_plan` draws the rows to check with
# the help of the model, and `audit` computes an answer that is right even if the model is useless.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from sklearn.datasets import load_digits

from nbmodels import NoisyLogisticRegression

fast = bool(os.environ.get("NBMODELS_FAST"))  # fewer rows for a quick test

# %% [markdown]
# ## The data
#
# The digits of scikit-learn, seen from afar: four pixels are averaged to one, which leaves 4 x 4 of
# them. With probability 15 % the label is replaced by another digit.

# %%
images, true = load_digits(return_X_y=True)
images = images.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16) / 16
if fast:
    images, true = images[true < 3][:150], true[true < 3][:150]
rng = np.random.default_rng(0)
replaced = rng.random(len(true)) < 0.15
given = np.where(replaced, (true + rng.integers(1, 10, len(true))) % 10, true)

# %% [markdown]
# ## A model's answer

# %%
model = NoisyLogisticRegression(random_state=0).fit(images, given)
p_wrong = model.corrected_labels()["p_wrong"]
print(f"wrong labels, by the model: {p_wrong.mean():.1%}")

# %% [markdown]
# That number has no guarantee: where digits look alike from afar, the model may take an unusual one
# for a wrong label. So we check.
#
# ## Plan, check, read
#
# The plan sorts the rows into strata, from those whose label is surely right to those whose label
# is surely wrong, and draws some rows of each. Its sentence says how narrow the answer will be
# before a single row is checked. The model has two estimates of the share of wrong labels, under
# two assumptions (notebook 6). The plan supposes the higher of the two.

# %%
print(model.noise_range_.sentence)
plan = model.audit_plan(100)
print(plan.sentence)
plan.strata.round(3)

# %% [markdown]
# A row of this table is a stratum: `lowest`, `highest` and `p_wrong` are the smallest, the largest
# and the mean P(wrong) of its rows, `p_suggested` the mean probability of their suggested labels.
# Of its `rows` rows `checks` are drawn.
#
# `plan.rows` is the list of rows to check. Somebody looks at each of them and writes down the true
# digit. Do this **without looking at the suggestion**, or the answer is not independent of the
# model any more. Here we look the truth up.

# %%
checked = true[plan.rows["position"]]
result = model.audit(plan, checked)
print(result.sentence)
result.table()

# %% [markdown]
# The second row is what your data are worth as they are, the third what they are worth after the
# model's corrections. If the last interval lies above the one before, correcting helps, whatever
# the model assumed. Here it does.
#
# The truth, which an auditor would never see. The interval of the share of wrong labels misses it
# narrowly, as one in ten does; the picture below counts how often.

# %%
truth = np.mean(given != true)
suggested = model.corrected_labels()["suggested"].to_numpy()
print(f"wrong labels:                    {truth:.1%}")
print(f"suggested labels that are right: {np.mean(suggested == true):.1%}")

# %% [markdown]
# ## The picture to keep
#
# Would another 100 rows have given another answer? We repeat the audit 30 times, and beside it the
# plain method: check 100 rows that are drawn at random, and count.

# %%
# Figure: Intervals of the share of wrong labels, repeated: 100 rows at random beside audits of
# 100 rows, which are narrower; a line marks the truth.
repeats = 5 if fast else 30
audits, counts = [], []
for seed in range(repeats):
    drawn = model.audit_plan(100, random_state=seed)
    answer = model.audit(drawn, true[drawn.rows["position"]]).share_wrong
    audits.append((answer.value, answer.low, answer.high))
    rows = np.random.default_rng(seed).choice(len(true), 100, replace=False)
    wrong = np.sum(given[rows] != true[rows])
    # Jeffreys' interval of a share
    counts.append((wrong / 100, *stats.beta.ppf([0.05, 0.95], wrong + 0.5, 100 - wrong + 0.5)))

figure, panels = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True, layout="constrained")
for axes, found, title in zip(
    panels,
    map(np.array, (counts, audits)),
    ("100 rows at random", "audit of 100 rows"),
    strict=True,
):
    value, low, high = found.T
    inside = (low <= truth) & (truth <= high)
    for at in range(repeats):
        style = {"color": "0.45"} if inside[at] else {"color": "black", "linewidth": 3}
        axes.plot([low[at], high[at]], [at, at], **style)
    axes.plot(value, range(repeats), "o", color="black", markersize=3)
    axes.axvline(truth, color="black", linestyle=":")
    axes.set_title(f"{title}\n{inside.sum()} of {repeats} intervals hold the truth")
    axes.set_xlabel("share of wrong labels, 90 % interval")
    print(f"{title}: intervals are {100 * np.mean(high - low):.1f} points wide on average")
panels[0].set_ylabel("repetition")
for axes in panels:
    axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# Dotted: the truth. Thick lines miss it; of 90 % intervals, about one in ten should. For the same
# number of checks the audit gives the narrower intervals, because the model knows a good deal about
# which labels are wrong, even if it is wrong about how many.
#
# One thing to keep in mind: a sample can only show what is in it. If the model is nearly certain of
# every label and makes few mistakes, 100 checked rows may hold none of them, and the interval is
# then too narrow. So check more rows where the margin seems too good to be true.
#
# ## The checked rows are worth more than the count
#
# They are known now. Given to `fit`, they are evidence about the other rows, too:
# `model.fit(images, given, trusted=result.trusted)`.
#
# ## Exercises
#
# **1.** How many rows have to be checked for an answer of plus or minus 2 points, if nothing is
# taken on trust? (`audit_plan` takes `margin=` in the place of a number of rows.) And for 4 points?
#
# <details><summary>Solution</summary>
#
# ```python
# for margin in (0.04, 0.02):
#     print(f"plus or minus {100 * margin:.0f} points: {len(model.audit_plan(margin=margin).rows)}")
# ```
#
# ```text
# plus or minus 4 points: 311
# plus or minus 2 points: 824
# ```
#
# Half the width would take four times as many rows if there were no end of them; here it takes
# less, since a good part of all rows is checked then. These numbers suppose that the model's
# P(wrong) says nothing. If it is good, the answer will be narrower than asked for.
# </details>
#
# **2.** Make the model useless: shuffle its `p_wrong` among the rows before each of the audits
# (`from nbmodels.audit.plan import draw_plan` and `from nbmodels.audit.result import audit`;
# `draw_plan(table, model.classes_, 100, seed=seed)` takes a table as `corrected_labels()` returns
# it, and `audit(plan, checked)` the true digits of the plan's rows). Do the intervals still hold
# the truth? How wide are they?
#
# <details><summary>Solution</summary>
#
# ```python
# from nbmodels.audit.plan import draw_plan
# from nbmodels.audit.result import audit
#
# shuffled = model.corrected_labels()
# inside, width = 0, 0.0
# for seed in range(repeats):
#     shuffled["p_wrong"] = np.random.default_rng(seed).permutation(shuffled["p_wrong"])
#     drawn = draw_plan(shuffled, model.classes_, 100, seed=seed)
#     share = audit(drawn, true[drawn.rows["position"]]).share_wrong
#     inside += share.low <= truth <= share.high
#     width += 100 * (share.high - share.low) / repeats
# print(f"{inside} of {repeats} intervals hold the truth; {width:.1f} points wide on average")
# ```
#
# ```text
# 27 of 30 intervals hold the truth; 11.5 points wide on average
# ```
#
# The intervals are about as wide as those of rows drawn at random. Of 30 intervals of 90 %, 27
# should hold the truth, give or take two by chance: a bad model makes the answer wider, not wrong.
# </details>
#
# **3.** `result.noise` lists flip rates, P(given | true), by pairs of classes. How many of the
# checked rows have the true class 3, and how wide is the interval of P(given is 3 | true is 3)?
#
# <details><summary>Solution</summary>
#
# ```python
# cell = result.noise.query("true == 3 and given == 3").iloc[0]
# print(f"{cell['checked']:.0f} rows checked, {cell['seen']:.0f} of them labelled 3")
# print(f"interval: {cell['low']:.2f} to {cell['high']:.2f}")
# ```
#
# ```text
# 6 rows checked, 6 of them labelled 3
# interval: 0.72 to 1.00
# ```
#
# A hundred checks answer one question about all rows. For ten classes, each with flip rates of its
# own, they are few. The model's noise matrix (notebook 2) fills the gap, on the model's word.
# </details>
