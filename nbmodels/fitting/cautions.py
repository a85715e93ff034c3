"""Warnings about a fit that follow from the selection of its settings.

Where the features are not informative, or no noise is found, what is reported holds: labels as
given, the plain classifier's predictions, and noise as wide as its prior. The verdict states it,
which is no warning: of fits whose intervals hold the noise, every fifth would be warned of.
"""

from nbmodels.errors import Caution, IdentifiabilityWarning, NotConvergedWarning

#: What the next two say of new items, until another classifier predicts them, and the beginning of
#: what is said then.
BY_PLAIN = "new items are predicted by the plain classifier of the given labels, "
BY_NONLINEAR = "new items are predicted by a nonlinear classifier of the given labels, which gives"
UNINFORMATIVE = Caution(
    IdentifiabilityWarning,
    "the features do not surely predict held-out labels better than chance: no label is corrected, "
    f"{BY_PLAIN}and the noise matrix is that of the prior and of rows that were checked, with "
    "intervals as wide",
    "uninformative features",
)
#: The same where so many labels show it that rows and labels may not belong together.
USELESS = Caution(
    IdentifiabilityWarning,
    UNINFORMATIVE.message.replace("do not surely predict", "do not predict"),
)
_BY_VOTES_ALONE = (
    "the training items' classes are those of the votes without the features, and new items are "
    "predicted by the plain classifier of the labels and votes as they are"
)
UNINFORMATIVE_BESIDE_VOTES = Caution(
    IdentifiabilityWarning,
    "the features do not surely predict held-out labels better than chance: " + _BY_VOTES_ALONE,
)
DISAGREEING_WITH_VOTES = Caution(
    IdentifiabilityWarning,
    "votes agree less with the classes found with the features than with those found without them: "
    + _BY_VOTES_ALONE,
)
UNINFORMATIVE_OF_SETS = Caution(
    IdentifiabilityWarning,
    "the features do not surely predict held-out label sets better than chance: they hardly tell "
    "which class of a set an item is of",
)
PLAIN = Caution(
    IdentifiabilityWarning,
    "held-out labels are likelier under the plain classifier of the given labels than under any "
    "noise that was fitted: new items are predicted by the plain classifier, and no given label is "
    "changed",
    "no noise",
)
#: Ctrl-C before all settings were compared.
INTERRUPTED = Caution(
    NotConvergedWarning,
    "interrupted while settings were compared; the best of those until then is taken",
)
INTERRUPTED_ROUNDS = Caution(
    NotConvergedWarning,
    "interrupted before the last self-training round; the one before it is taken",
)
