"""Annotators who copy from each other, found by counting votes.

A fit takes copied votes for independent evidence, and a group of copies for the truth: its own
residuals then show nothing. So copies are sought before any fit, by classes that votes weighted by
each annotator's one accuracy suggest. Of a pair, the expected agreement is that of independent
votes given the class, which all annotators but the pair and those whom they copy suggest. With
probability ``c`` of a copy the agreement is ``c + (1 - c) expected``. Difficult items make all
pairs agree more than expected; the median pair is the measure, tested at 1 % for all pairs
together (Bonferroni).

Who copies at least every other vote is kept where that makes the votes likelier. Of annotators,
those who copy from one of them are then sought by a likelihood of all votes
(:mod:`nbmodels.fitting.copied_sources`); functions agree on a class that each of them finds.

Of a few annotators those are sought, up to about half, who copy nearly all votes from a source that
does not vote (:mod:`nbmodels.fitting.hidden_source`), if all others agree beyond chance. Two of
whom one copies in part are found by a likelihood of the pair's votes
(:mod:`nbmodels.fitting.copied_pairs`), where nobody else is. Of annotators who name one label only
(:mod:`nbmodels.fitting.one_label_annotators`), whose votes tell copies from independent ones least,
nothing is said, and no other is judged by them.

Where that likelihood says that some share a source that does not vote, pairs decide who does. A fit
to such votes follows the copies. So those pairs are kept who agree too often by a fit to the
weighted votes, too, if either the fit to all votes says the same of them together, or the
annotators outside agree with each other so well that they can judge them. Among spammers, the few
who are right agree as often as copies do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy import sparse, stats

from nbmodels.core.short_rows import softmax
from nbmodels.fitting.copied_pairs import LEVEL, copying_pair
from nbmodels.fitting.copied_sources import LEAST_SHARED, MOST_CELLS, find_sources
from nbmodels.fitting.copies import COLUMNS, Copies, in_cluster, no_copies
from nbmodels.fitting.hidden_source import hidden_source
from nbmodels.fitting.one_accuracy import drawn_to, of_one_accuracy
from nbmodels.fitting.one_label_annotators import names_one_label
from nbmodels.fitting.uneven_pairs import UnevenPairs
from nbmodels.fitting.vote_agreement import beyond_chance
from nbmodels.fitting.vote_dependence import VoteTable
from nbmodels.fitting.vote_pairs import (
    MOST_PAIRS,
    AnnotatorPairs,
    agreement_by_class,
    annotator_pairs,
    expected_agreement,
    pairs_of_votes,
)

#: Least probability of a copy beyond the usual one, of those who copy often and of those who copy
#: now and then.
_OFTEN, _SELDOM = 0.5, 0.2

#: Least agreement, corrected for chance (Cohen's kappa), of those who can judge others: of three
#: classes they are right in 63 % of their votes. Standard errors by which they must surpass it.
_JUDGES, _SURELY = 0.2, 1.64

#: Standard errors by which those outside of a group agree beyond chance, where they show that it
#: copies: votes of two who are right and of guessers are as likely under copies.
_BESIDE_GROUP = 3.0

#: Fewest pairs whose agreements are compared, and how many times as uneven as chance would have
#: them they are at most where annotators are not taken for a group.
_FEWEST_PAIRS, MOST_UNEVEN = 3, 2.0

#: Fewest items that are looked at where functions abstain.
_FEWEST_ITEMS = 100

#: Pairs of votes by which the usual agreement is measured: far more than its error would show.
_MOST_EXPECTED = 400_000

#: Rounds in which clusters grow; a pair joins if its test is at least this part of the largest.
_ROUNDS, _PART = 6, 0.7

#: Steps from shares of votes to classes, and part of the evidence that counts: near to counting,
#: and of a fit.
_BEGINS = ((2, 0.5), (30, 1.0))

#: Odds of an abstention against a vote, to which those of a function are drawn.
_ABSTAINING = 0.5

#: The same of a fit for each pair.
_OF_A_PAIR = (12, 1.0)

#: Probabilities of a copy that a cluster's is sought among, and least probability of a pair.
_TRIED, _TINY = np.linspace(_OFTEN, 0.95, 10), 1e-12

#: Probabilities of a copy by which it is guessed who might be a source.
_COPIED = np.linspace(0.2, 0.9, 8)


def find_copies(votes: VoteTable, n_workers: int, n_labels: int, abstains: bool) -> Copies:
    """Clusters of annotators who agree more often than their accuracies and the classes explain.

    Args:
        votes: that were cast.
        n_workers: W.
        n_labels: K.
        abstains: whether no vote is an outcome, too, on which a pair agrees.
    """
    none = no_copies(n_workers)
    if abstains:
        table = _with_abstentions(votes, n_workers, n_labels)
    else:
        table = votes = votes.without(names_one_label(votes, n_workers, n_labels))
    if table is None or not len(table.row):
        return none
    found, tried = none, [none, *_grown(table, none, n_labels, _OFTEN)]
    if len(tried) > 1:
        scores = [_pairwise_score(table, one, n_labels) for one in tried]
        found = tried[int(np.argmax(scores))]
    if abstains:
        return found
    known, hidden = _from_sources(votes, found, n_labels)
    group = none if found.found else _from_hidden_source(votes, n_workers, n_labels)
    # where the source is taken for the truth, those who do not copy seem to
    if group.found and not (known.found and group.holds(known)):
        return group
    if known.found or found.found:
        return known if known.found else found
    seldom = list(_grown(votes, none, n_labels, _SELDOM)) if hidden else []
    found = _confirmed(votes, seldom[-1], n_labels) if seldom else none
    return found if found.found else _of_one_pair(votes, n_workers, n_labels)


def _from_hidden_source(votes: VoteTable, n_workers: int, k: int) -> Copies:
    """Those who copy nearly all votes from a source that a fit would take for the truth."""
    none, pairs = no_copies(n_workers), _well_shared(votes, n_workers)
    found = hidden_source(votes, n_workers, k)
    if found is None:
        return none
    if not beyond_chance(votes.without(found.members), n_workers, k) >= _BESIDE_GROUP:
        return none
    inside = pairs.those(found.members[pairs.first] & found.members[pairs.second])
    if not len(inside):
        return none
    copied = found.copied[inside.first] * found.copied[inside.second]
    agreement = inside.agreed / inside.shared
    expected = np.clip((agreement - copied) / np.maximum(1 - copied, 1e-6), 0, 1)  # of own votes
    return _clustered(_frame(inside, agreement, expected, copied, 0.0), n_workers)


def _of_one_pair(votes: VoteTable, n_workers: int, k: int) -> Copies:
    """The one pair whose votes are surely likelier with copies."""
    pairs, none = _well_shared(votes, n_workers), no_copies(n_workers)

    def evidence(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _counted(votes, weights, n_workers, k, _OF_A_PAIR)[:2]

    found = copying_pair(votes, pairs, n_workers, k, evidence)
    if found is None:
        return none
    at, copied = found
    one = pairs.those(np.arange(len(pairs)) == at)
    agreement = one.agreed / one.shared
    expected = np.clip((agreement - copied) / (1 - copied), 0, 1)  # of own votes
    return _clustered(_frame(one, agreement, expected, np.array([copied]), 0.0), n_workers)


def _from_sources(votes: VoteTable, clusters: Copies, k: int) -> tuple[Copies, bool]:
    """Who copies from one of the annotators, and whether some do from a source that does not vote.

    Where most copy nearly always, the likelihood has another mode at which their source is the
    truth. So it is searched from classes that the clusters found suggest, too. Of more votes than
    can be fitted in a moment, some may copy whom the rest does not show.
    """
    n_workers = len(clusters.cluster)
    some = votes.thinned(max(MOST_CELLS // k, 1))
    unseen = len(some.row) < len(votes.row)
    votes, none, pairs = some, no_copies(n_workers), _well_shared(some, n_workers)
    if not len(pairs):
        return none, unseen
    begin = softmax(_counted(votes, clusters.weights(votes), n_workers, k, _BEGINS[-1])[1])
    promising = _promising(votes, pairs, n_workers, k)
    sources, hidden = find_sources(votes, n_workers, k, promising, begin)
    if not sources.found:
        return none, hidden or unseen
    at = np.flatnonzero(sources.source >= 0)
    whom, part = sources.source[at], sources.part[at]
    keys = pairs.first * n_workers + pairs.second
    place = np.searchsorted(keys, np.minimum(at, whom) * n_workers + np.maximum(at, whom))
    shared, agreement = pairs.shared[place], pairs.agreed[place] / pairs.shared[place]
    expected = np.clip((agreement - part) / (1 - part), 0, 1)  # of own votes
    z = _surprise(agreement, expected, shared)
    columns = np.minimum(at, whom), np.maximum(at, whom), shared, agreement, expected, part, z
    found = _clustered(pd.DataFrame(dict(zip(COLUMNS, columns, strict=True))), n_workers)
    return replace(found, sources=sources), hidden


def _promising(
    votes: VoteTable, pairs: AnnotatorPairs, n_workers: int, k: int
) -> Int[np.ndarray, " w"]:
    """Annotators ordered by how much likelier copies from them make the agreement of pairs."""
    none = no_copies(n_workers)
    agreement, expected = _agreements(votes, pairs, none, k, _BEGINS[0])
    left = np.maximum(1 - expected, 1e-6)
    usual = max(float(np.median((agreement - expected) / left)), 0.0)
    alone = np.clip(expected + usual * left, 1e-3, 1 - 1e-3)[:, None]
    alike, apart = pairs.agreed[:, None], (pairs.shared - pairs.agreed)[:, None]
    ratio = alike * np.log(_COPIED / alone + 1 - _COPIED) + apart * np.log(1 - _COPIED)
    gain = np.maximum(ratio.max(1) - np.log(pairs.shared) / 2, 0)
    sums = (np.bincount(one, gain, len(none.cluster)) for one in (pairs.first, pairs.second))
    return np.argsort(-sum(sums), kind="stable")


def uneven_pairs(votes: VoteTable, copies: Copies, n_labels: int) -> UnevenPairs:
    """How unevenly pairs agree, beyond the clusters found and what is usual.

    Who copies in part from many is not found as a pair. But the classes that a fit suggests are
    then those of the group, and its members agree as often as expected while all others agree too
    often. That it is the group that is right, and not the others, is no more than the fit's own
    view.

    Args:
        votes: that were cast.
        copies: found among them.
        n_labels: K.

    Returns:
        no pairs where there are fewer than three.
    """
    pairs = _well_shared(votes, len(copies.cluster))
    apart = copies.cluster[pairs.first] != copies.cluster[pairs.second]
    pairs = pairs.those(apart)
    pairs = pairs.those(_sampled(pairs))
    if len(pairs) < _FEWEST_PAIRS:
        return UnevenPairs(np.zeros(0), np.zeros(0))
    agreement, expected = _agreements(votes, pairs, copies, n_labels, _BEGINS[-1])
    left = np.maximum(1 - expected, 1e-6)
    usual = float(np.median((agreement - expected) / left))
    share = np.clip(expected + usual * left, 0, 1)
    spread = _spread(share, pairs.shared)
    return UnevenPairs((agreement - share) / spread, (1 - share) / spread)


def _well_shared(votes: VoteTable, n_workers: int) -> AnnotatorPairs:
    pairs = annotator_pairs(votes, n_workers)
    return pairs.those(pairs.shared >= LEAST_SHARED)


def _sampled(pairs: AnnotatorPairs) -> Bool[np.ndarray, " p"]:
    """An even part of all pairs, by which it is known what is usual."""
    return np.arange(len(pairs)) % max(-(-int(pairs.shared.sum()) // _MOST_EXPECTED), 1) == 0


def _confirmed(votes: VoteTable, found: Copies, k: int) -> Copies:
    """Those of the clusters that a fit to the weighted votes confirms and somebody can judge."""
    n_workers = len(found.cluster)
    none, pairs = no_copies(n_workers), _well_shared(votes, n_workers)
    level = stats.norm.isf(LEVEL / max(len(pairs), 1))
    for _ in range(_ROUNDS):
        cluster = found.cluster
        apart = cluster[pairs.first] != cluster[pairs.second]
        frame = _judged(votes, pairs, found, k, apart)
        spread = 1.4826 * stats.median_abs_deviation(frame["z"][apart]) if apart.any() else 1.0
        copied = (frame["z"] > level * max(spread, 1)) & (frame["copied"] > _SELDOM)
        kept = frame[copied & ~apart]
        if not len(kept):
            return none
        found = _clustered(kept, n_workers)
        if (found.cluster == cluster).all():
            break
    of_all = _judged(votes, pairs, none, k, np.ones(len(pairs), bool))["z"][kept.index]
    together = of_all.sum() / np.sqrt(len(kept)) > stats.norm.isf(LEVEL)
    alone = np.bincount(found.cluster)[found.cluster] == 1
    outside = pairs.those(alone[pairs.first] & alone[pairs.second])
    return found if together or _can_judge(votes, outside, k) else none


def _can_judge(votes: VoteTable, pairs: AnnotatorPairs, k: int) -> bool:
    """Whether pairs agree so much more often than by chance that others can be judged by them."""
    number = pairs.shared.sum()
    if not number:
        return False
    agreement = pairs.agreed.sum() / number
    chance = float((np.bincount(votes.label, minlength=k) ** 2).sum()) / len(votes.label) ** 2
    spread = np.sqrt(agreement * (1 - agreement) / number)
    left = max(1 - chance, 1e-6)
    return bool((agreement - _SURELY * spread - chance) / left >= _JUDGES)


def _judged(
    votes: VoteTable, pairs: AnnotatorPairs, so_far: Copies, k: int, usual: np.ndarray
) -> pd.DataFrame:
    """Pairs with their tests by a fit; ``usual`` are those by which it is known what is usual."""
    agreement, expected = _agreements(votes, pairs, so_far, k, _BEGINS[-1])
    left = np.maximum(1 - expected, 1e-6)
    copied = (agreement - expected) / left
    middle = max(float(np.median(copied[usual])), 0.0) if usual.any() else 0.0
    return _frame(pairs, agreement, expected, copied, middle)


def _grown(votes: VoteTable, none: Copies, k: int, least: float) -> Iterator[Copies]:
    """Clusters to which the pairs of the largest tests are added, round by round."""
    found, pairs = none, _well_shared(votes, len(none.cluster))
    for _ in range(_ROUNDS):
        tested = _tested(votes, pairs, found, k, least)
        joined = tested[tested["z"] >= _PART * tested["z"].max()]
        apart = found.cluster[joined["first"]] != found.cluster[joined["second"]]
        if not apart.any():
            return
        found = _clustered(pd.concat([found.pairs, joined[apart]]), len(none.cluster))
        yield found


def _pairwise_score(votes: VoteTable, copies: Copies, k: int) -> float:
    """Composite log-likelihood of pairs of votes (Varin, Reid and Firth 2011), penalised.

    A vote is in several pairs, by which the sum is divided. The penalty is that of the Bayesian
    information criterion, for one probability of a copy each annotator in a cluster. That of a
    cluster is the likeliest here: the test has taken the copied votes for the truth in part.
    """
    n_workers = len(copies.cluster)
    _, whole, matrices = _counted(votes, copies.weights(votes), n_workers, k, _BEGINS[-1])
    shares = softmax(whole).mean(0)
    total, number = 0.0, 0
    inside = np.zeros((len(_TRIED), n_workers))
    for a, b in pairs_of_votes(votes):
        one, two = (matrices[votes.worker[x], votes.label[x]] for x in (a, b))
        apart, copied = (one * two) @ shares, ((one + two) / 2) @ shares
        cluster = copies.cluster[votes.worker[a]]
        together = cluster == copies.cluster[votes.worker[b]]
        total += np.log(np.maximum(apart[~together], _TINY)).sum()
        cluster, apart = cluster[together], apart[together]
        same = copied[together] * (votes.label[a] == votes.label[b])[together]
        for i, c in enumerate(_TRIED):
            logs = np.log(np.maximum((1 - c) * apart + c * same, _TINY))
            inside[i] += np.bincount(cluster, logs, n_workers)
        number += len(a)
    total += inside.max(0).sum()
    each = 2 * number / len(votes.row)
    sizes = np.bincount(copies.cluster)
    free = (sizes[sizes > 1] - 1).sum()
    return float(total / max(each, 1) - free * np.log(max(len(votes.row), 2)) / 2)


def _clustered(pairs: pd.DataFrame, n_workers: int) -> Copies:
    a, b = pairs["first"].to_numpy(int), pairs["second"].to_numpy(int)
    graph = sparse.coo_array((np.ones(len(a)), (a, b)), (n_workers, n_workers))
    _, cluster = sparse.csgraph.connected_components(graph.tocsr(), directed=False)
    at, copied = cluster[a], pairs["copied"].to_numpy()
    mean = np.bincount(at, copied, n_workers) / np.maximum(np.bincount(at, minlength=n_workers), 1)
    ordered = pairs.sort_values("z", ascending=False).reset_index(drop=True)
    return Copies(cluster, mean[cluster], ordered)


def _with_abstentions(votes: VoteTable, n_workers: int, n_labels: int) -> VoteTable | None:
    """With a row of label K where a function abstains; None where there are too many functions."""
    most = MOST_PAIRS // max(n_workers * (n_workers - 1) // 2, 1)
    items = np.unique(votes.row)
    if most < min(_FEWEST_ITEMS, len(items)):
        return None
    items = np.sort(np.random.default_rng(len(items)).permutation(items)[:most])
    label = np.full((len(items), n_workers), n_labels)
    at = np.searchsorted(items, votes.row)
    here = (at < len(items)) & (items[np.minimum(at, len(items) - 1)] == votes.row)
    label[at[here], votes.worker[here]] = votes.label[here]
    row, worker = np.divmod(np.arange(label.size), n_workers)
    return VoteTable(row, worker, label.ravel(), len(items))


def _tested(
    votes: VoteTable, pairs: AnnotatorPairs, so_far: Copies, k: int, least: float
) -> pd.DataFrame:
    """Pairs who agree too often, given the clusters that are known."""
    n_workers = len(so_far.cluster)
    logs, whole, matrices = _counted(votes, so_far.weights(votes), n_workers, k, _BEGINS[0])
    by_class, sums = agreement_by_class(matrices, pairs), _of_clusters(votes, so_far, logs)
    # who might be found, and those by which it is known what is usual
    sample = _sampled(pairs)
    tested = _possible(pairs, by_class, least) | sample
    level, pairs, by_class = LEVEL / max(len(pairs), 1), pairs.those(tested), by_class[tested]
    if not len(pairs):
        return no_copies(n_workers).pairs
    sums_of = votes, pairs, by_class, so_far.cluster, whole, sums
    agreement, expected = (x / pairs.shared for x in (pairs.agreed, expected_agreement(*sums_of)))
    left = np.maximum(1 - expected, 1e-6)
    copied = (agreement - expected) / left
    usual = max(float(np.median(copied[sample[tested]])), 0.0)
    found = _frame(pairs, agreement, expected, copied, usual)
    return found[(found["z"] > stats.norm.isf(level)) & (found["copied"] > least)]


def _frame(
    pairs: AnnotatorPairs,
    agreement: Float[np.ndarray, " p"],
    expected: Float[np.ndarray, " p"],
    copied: Float[np.ndarray, " p"],
    usual: float,
) -> pd.DataFrame:
    """Pairs as :class:`Copies` has them, by probabilities of a copy of which one is usual."""
    left = np.maximum(1 - expected, 1e-6)
    z = _surprise(agreement, expected + usual * left, pairs.shared)
    copied = np.clip(copied - usual, 0, 1)
    columns = pairs.first, pairs.second, pairs.shared, agreement, expected, copied, z
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def _agreements(
    votes: VoteTable, pairs: AnnotatorPairs, so_far: Copies, k: int, begin: tuple[int, float]
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
    """Shares of their items on which pairs agree, and would agree if votes were independent."""
    logs, whole, matrices = _counted(votes, so_far.weights(votes), len(so_far.cluster), k, begin)
    by_class, sums = agreement_by_class(matrices, pairs), _of_clusters(votes, so_far, logs)
    number = expected_agreement(votes, pairs, by_class, so_far.cluster, whole, sums)
    return pairs.agreed / pairs.shared, number / pairs.shared


def _of_clusters(votes: VoteTable, copies: Copies, logs: np.ndarray) -> np.ndarray:
    """``(V, K)`` sums of the log-likelihoods of all votes of a vote's cluster on its item."""
    if not copies.found:
        return logs
    together = in_cluster(votes, copies.cluster)
    return np.stack([np.bincount(together, x) for x in logs.T], 1)[together]


def _surprise(
    agreement: Float[np.ndarray, " p"],
    expected: Float[np.ndarray, " p"],
    number: Float[np.ndarray, " p"],
) -> Float[np.ndarray, " p"]:
    """Standard errors by which shares exceed their expectation; the larger that, the fewer."""
    return (agreement - expected) / _spread(expected, number)


def _spread(
    share: Float[np.ndarray, " p"], number: Float[np.ndarray, " p"]
) -> Float[np.ndarray, " p"]:
    """Standard errors of shares."""
    return np.sqrt(np.maximum(share * (1 - share), 1e-4) / number)


def _possible(
    pairs: AnnotatorPairs, by_class: Float[np.ndarray, "p k"], least_copied: float
) -> Bool[np.ndarray, " p"]:
    """Pairs who would be found if every item were of the class in which they agree least.

    No other pair can be found: the expected agreement is a mean over classes, and test and
    probability of a copy fall in it.
    """
    agreement, least = pairs.agreed / pairs.shared, by_class.min(1, initial=1.0)
    beyond = _surprise(agreement, least, pairs.shared)
    copied = (agreement - least) / np.maximum(1 - least, 1e-6)
    return (beyond > stats.norm.isf(LEVEL / max(len(pairs), 1))) & (copied > least_copied)


def _counted(
    votes: VoteTable, weights: np.ndarray, n_workers: int, k: int, begin: tuple[int, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(V, K)`` log-likelihoods of votes, their ``(N, K)`` sums, and ``(W, labels, K)`` matrices.

    Each matrix is drawn to one accuracy. Labels beyond the classes are abstentions, which are no
    evidence.
    """
    (steps, power), cast = begin, votes.label < k
    n_labels = max(k, int(votes.label.max()) + 1)
    cells = votes.row, votes.worker * n_labels + votes.label
    shape = votes.n_items, n_workers * n_labels
    cell = sparse.coo_array((np.ones(len(weights)), cells), shape).tocsr()
    weighted = cell
    if (weights * cast != 1).any():
        weighted = sparse.coo_array((weights * cast, cells), shape).tocsr()
    logs = np.where(np.eye(n_labels, k, dtype=bool), np.log(2.0), np.zeros((n_workers, 1, 1)))
    for _ in range(steps):
        resp = softmax(power * (weighted @ logs.reshape(-1, k)))
        counts = (cell.T @ resp).reshape(n_workers, n_labels, k)
        one = of_one_accuracy(counts[:, :k])
        logs[:, :k] = np.log(drawn_to(counts[:, :k], one))
    logs *= power
    of_votes = logs[votes.worker, votes.label] * (weights * cast)[:, None]
    abstaining = np.full((n_workers, n_labels - k, k), _ABSTAINING)
    centre = np.concatenate([one, abstaining], 1)
    matrices = drawn_to(counts, centre / centre.sum(1, keepdims=True))
    return of_votes, weighted @ logs.reshape(-1, k), matrices
