"""Each plot can be drawn, without a warning, and comes with the numbers in it."""

import io

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from marks import slow_among
from matplotlib.backends.backend_agg import FigureCanvasAgg

from nbmodels.errors import DataError
from nbmodels.posterior import plots

NAMES = ["ant", "bee", "a rather long name"]


#: They differ at their ends only.
LONG = [f"Home & Garden > Kitchen > Appliances > {what}" for what in ("Pans", "Pots", "Toasters")]


def some_tree(names=NAMES, shares="class_prior"):
    """Draws as the sampler gives them, made up; ``shares`` is the name of class shares."""
    import arviz_base
    import xarray

    rng = np.random.default_rng(0)
    k = len(names)

    def noise(chains, draws, size):
        rows = [
            rng.dirichlet(size * (0.75 * np.eye(k)[j] + 0.25 / k), (chains, draws))
            for j in range(k)
        ]
        return np.stack(rows, -1)

    group = {
        "posterior": {
            "noise_matrix": noise(4, 300, 60),
            shares: rng.dirichlet([30, 20, 10], (4, 300)),
        },
        "prior": {
            "noise_matrix": noise(1, 300, 6),
            shares: rng.dirichlet([2, 2, 2], (1, 300)),
        },
        "observed_data": {"labels": np.array([0, 0, 1, 2, -1])},
    }
    dims = {
        "noise_matrix": ["observed_class", "true_class"],
        shares: ["true_class"],
        "labels": ["item"],
    }
    tree = arviz_base.from_dict(
        group, dims=dims, coords={"true_class": names, "observed_class": names}
    )
    p = rng.dirichlet([1, 1, 1], 5)
    tree["label_posterior"] = xarray.DataTree(
        xarray.Dataset({"p": (("item", "true_class"), p)}, coords={"true_class": names})
    )
    return tree


TREE, LONG_TREE = some_tree(), some_tree(LONG)
CUT = some_tree(shares="class_shares")


def drawn(figure):
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture)
    assert picture.getvalue().startswith(b"\x89PNG")


PLOTS = {
    "noise": lambda: plots.noise_matrix(TREE),
    "forest": lambda: plots.flip_rates(TREE, most=4),
    "before": lambda: plots.prior_and_posterior(TREE),
    "shares": lambda: plots.class_shares(TREE),
    "item": lambda: plots.item(TREE, 3),
    "trace": lambda: plots.chains(TREE, "trace", name="noise_matrix"),
    "rank": lambda: plots.chains(TREE, "rank"),
    "cut": lambda: plots.class_shares(CUT),
    "cut trace": lambda: plots.chains(CUT),
    "agreement": lambda: plots.agreement({"EM": np.eye(3), "Gibbs": TREE, "NUTS": TREE}),
}


@pytest.mark.parametrize("name", slow_among(PLOTS, ["rank"]))
def test_pictures_can_be_drawn(name):
    figure, frame = PLOTS[name]()
    drawn(figure)
    assert len(frame)
    if name in ("trace", "rank", "cut trace"):
        import matplotlib.pyplot as plt

        assert not plt.get_fignums()


def test_tables_hold_what_is_shown():
    mean = TREE["posterior"]["noise_matrix"].mean(("chain", "draw"))
    _, rates = plots.flip_rates(TREE, most=2)
    assert len(rates) == 6
    assert (rates["mean"].diff().dropna() <= 0).all()
    for row in rates.itertuples():
        np.testing.assert_allclose(
            row.mean, mean.sel(true_class=row.true, observed_class=row.observed)
        )
        assert row.low < row.lower_quartile < row.upper_quartile < row.high
    _, shares = plots.class_shares(TREE)
    np.testing.assert_allclose(shares["given"], [0.5, 0.25, 0.25])
    _, one = plots.item(TREE, 3)
    assert one["given"].tolist() == [False, False, True]
    np.testing.assert_allclose(one["probability"], TREE["label_posterior"]["p"][3])
    _, before = plots.prior_and_posterior(TREE, bins=20)
    mass = before.groupby("true")[["prior", "posterior"]].sum() / 20
    np.testing.assert_allclose(mass, 1)
    _, ways = plots.agreement({"EM": np.eye(3), "Gibbs": TREE})
    assert set(ways["method"]) == {"EM", "Gibbs"}
    right = ways[(ways["method"] == "EM") & (ways["true"] == ways["observed"])]
    assert (right["mean"] == 1).all()
    _, ranks = plots.chains(TREE, "trace", name="noise_matrix")
    np.testing.assert_array_equal(
        ranks["noise_matrix[1]"], TREE["posterior"]["noise_matrix"][:, :, 1, 1].to_numpy().ravel()
    )


def test_what_is_not_there_is_named():
    with pytest.raises(DataError, match="5 is none of 5 items"):
        plots.item(TREE, 5)
    with pytest.raises(DataError, match=r"^index: there is no item 'ant 9'"):
        plots.item(TREE, "ant 9")
    with pytest.raises(DataError, match=r"no 'rho' in .*; it has 'noise_matrix', 'class_prior'"):
        plots.flip_rates(TREE, name="rho")
    with pytest.raises(DataError, match="at least one must be a tree"):
        plots.agreement({"EM": np.eye(3)})
    with pytest.raises(DataError, match="expected a mapping from names to trees"):
        plots.agreement(TREE)
    with pytest.raises(DataError, match="expected 'trace' or 'rank'"):
        plots.chains(TREE, "autocorrelation")
    neither = some_tree(shares="class_prior_bias")
    with pytest.raises(DataError, match=r"no 'class_prior' in .*; it has 'noise_matrix'"):
        plots.class_shares(neither)


@pytest.mark.parametrize("name", ["noise_matrix", "flip_rates", "class_shares", "item", "chains"])
def test_what_is_no_tree_of_draws_is_named(name):
    more = (0,) if name == "item" else ()
    with pytest.raises(DataError, match=r"^tree: expected the DataTree .* posterior\(\) .*ndarray"):
        getattr(plots, name)(np.eye(3), *more)


def test_a_percentage_is_no_level():
    with pytest.raises(DataError, match=r"^level: expected a probability between 0 and 1, got 90"):
        plots.noise_matrix(some_tree(), level=90)


def test_without_a_class_prior_there_are_shares_among_the_items_and_traces_of_right_labels():
    _, shares = plots.class_shares(CUT)
    mean = CUT["posterior"]["class_shares"].mean(("chain", "draw"))
    np.testing.assert_allclose(shares["mean"], mean)
    _, draws = plots.chains(CUT)
    assert list(draws)[2:] == [f"noise_matrix[{k}]" for k in range(3)]
    assert list(plots.chains(TREE)[1])[2:] == [f"class_prior[{k}]" for k in range(3)]


def of_votes(*channels):
    """Draws without labels, of the noise of these channels of votes."""
    tree = some_tree()
    kept = {group: tree[group].to_dataset() for group in ("prior", "posterior")}
    for group, found in kept.items():
        noise = found["noise_matrix"]
        kept[group] = found.drop_vars("noise_matrix").assign(
            {f"{name}_noise_matrix": noise for name in channels}
        )
    return type(tree).from_dict({**kept, "label_posterior": tree["label_posterior"]})


def test_the_only_noise_matrix_is_shown_by_default():
    tree = of_votes("votes")
    for plot in (plots.noise_matrix, plots.flip_rates, plots.prior_and_posterior):
        figure, frame = plot(tree)
        drawn(figure)
        pd.testing.assert_frame_equal(frame, plot(tree, name="votes_noise_matrix")[1])
    _, both = plots.agreement({"votes": tree, "labels": TREE})
    assert both.groupby("method").size().tolist() == [9, 9]
    with pytest.raises(DataError, match="one of 'votes_noise_matrix', 'others_noise_matrix'"):
        plots.noise_matrix(of_votes("votes", "others"))
    with pytest.raises(DataError, match=r"no noise matrix in its group .*; it has 'class_prior'"):
        plots.noise_matrix(of_votes())


def test_annotators_of_a_cross_fitted_model_are_among_the_shares_of_its_items():
    rng = np.random.default_rng(0)
    rates = np.broadcast_to([[[0.9, 0.1], [0.2, 0.8]]], (2, 50, 1, 2, 2))  # [true, observed]
    first = rng.random((2, 50))
    posterior = xr.Dataset(
        {
            "votes_transitions": (
                ("chain", "draw", "votes_annotator", "true_class", "observed_class"),
                rates,
            ),
            "votes_noise_matrix": (
                ("chain", "draw", "observed_class", "true_class"),
                rates[:, :, 0].swapaxes(-1, -2),
            ),
            "class_shares": (("chain", "draw", "true_class"), np.stack([first, 1 - first], -1)),
        },
        {"votes_annotator": ["ann"], "true_class": ["a", "b"], "observed_class": ["a", "b"]},
    )
    tree = xr.DataTree.from_dict({"posterior": posterior})
    figure, shares = plots.annotators(tree)
    drawn(figure)
    np.testing.assert_allclose(shares["mean"], (0.8 + 0.1 * first).mean())
    figure, _ = plots.noise_matrix(tree)
    assert figure.axes[0].get_title().startswith("P(vote | true class) of an annotator taken at")


def test_shares_without_given_labels():
    figure, shares = plots.class_shares(of_votes("votes"))
    assert figure.axes[0].get_xlabel() == "share of the items, with 50% and 90% intervals"
    drawn(figure)
    assert shares["given"].isna().all()
    np.testing.assert_allclose(shares["mean"], plots.class_shares(TREE)[1]["mean"])
    with pytest.raises(DataError, match="no observed 'votes'"):
        plots.class_shares(of_votes("votes"), labels="votes")
    unseen = TREE.filter(lambda node: node.name != "observed_data")
    with pytest.raises(DataError, match="no observed 'labels'"):
        plots.class_shares(unseen)


def test_matrices_of_sub_types_are_no_heat_map():
    tree = of_votes("votes")
    for group in ("prior", "posterior"):
        tree[group] = type(tree)(tree[group].to_dataset().isel(observed_class=[0, 1]))
    plots.flip_rates(tree)
    for plot in (plots.noise_matrix, plots.prior_and_posterior):
        with pytest.raises(DataError, match="3 columns and 2 rows"):
            plot(tree)


NAMED = {
    "forest": lambda tree: plots.flip_rates(tree),
    "agreement": lambda tree: plots.agreement({"Gibbs": tree, "NUTS": tree}),
    "shares": lambda tree: plots.class_shares(tree),
    "item": lambda tree: plots.item(tree, 3),
}


@pytest.mark.parametrize("name", NAMED)
def test_long_names_take_no_room_of_the_data_and_stay_different(name):
    short, long = (NAMED[name](tree)[0] for tree in (TREE, LONG_TREE))
    widths = []
    for figure in (short, long):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        (axes,) = figure.axes
        assert len({text.get_text() for text in axes.get_yticklabels()}) == len(axes.get_yticks())
        left, _, right, _ = axes.get_tightbbox(canvas.get_renderer()).extents / figure.dpi
        assert left >= 0
        assert right <= figure.get_figwidth()
        widths.append(axes.get_position().width * figure.get_figwidth())
    assert widths[1] > 0.9 * widths[0]


def test_long_settings_take_no_room_of_title_and_axis_label():
    choice = pd.DataFrame(
        {"a_setting_of_some_length": [0.25, 1.0], "another_long_setting": ["x", "y"]}
    )
    choice = choice.assign(yet_another_long_setting=[1, 2], log_likelihood=-1.0, gain=[0.0, 0.1])
    choice = choice.assign(standard_error=0.05, identified=True, chosen=[False, True])
    figure, _ = plots.held_out_scores(choice)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (axes,) = figure.axes
    for text in (axes.xaxis.label, axes.title, axes._left_title, axes.yaxis.get_ticklabels()[0]):
        left, _, right, _ = text.get_window_extent(canvas.get_renderer()).extents / figure.dpi
        assert left >= 0
        assert right <= figure.get_figwidth()


def test_chains_are_named_and_axes_have_labels():
    for kind, label in (("trace", "probability"), ("rank", "ECDF less uniform")):
        figure, _ = plots.chains(TREE, kind, name="noise_matrix")
        drawn(figure)
        assert figure.axes[0].get_ylabel() == label
        assert figure.axes[0].get_title() == "P(right label | true class)\nant"
        (legend,) = figure.legends
        assert [one.get_text() for one in legend.get_texts()] == [f"chain {c}" for c in range(4)]


def test_ranks_of_few_draws_that_mixed_lie_in_an_envelope_that_is_no_wider_than_needed():
    dims, chains = ("chain", "draw", "cell"), {"chain": [0, 1]}
    draws = np.random.default_rng(0).random((2, 60, 6))
    draws[1, :, 5] += 0.4  # the second chain is elsewhere
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"class_prior": (dims, draws)}, chains)})
    panels = plots.chains(tree, "rank")[0].axes[:6]
    envelopes = [axes.collections[0].get_paths()[0].vertices[:, 1].max() for axes in panels]
    off = [max(np.abs(line.get_ydata()).max() for line in axes.get_lines()) for axes in panels]
    assert (np.array(off) < envelopes).tolist() == 5 * [True] + [False]
    assert max(envelopes) < 0.25
    with pytest.raises(DataError, match="compare chains, and there is one only"):
        plots.chains(TREE.isel(chain=[0]), "rank")


def test_panels_of_long_names_have_titles_of_their_own():
    for figure in (plots.prior_and_posterior(LONG_TREE)[0], plots.chains(LONG_TREE)[0]):
        titles = {axes.get_title() for axes in figure.axes if axes.get_title()}
        assert len(titles) == 3
        assert max(len(title.splitlines()[-1]) for title in titles) < 30


def test_dollar_signs_in_names_are_no_formulas():
    tree = some_tree(["$50 to $60", "a $^ b", "$x$"])
    for draw in (plots.noise_matrix, plots.flip_rates, plots.prior_and_posterior):
        figure, _ = draw(tree)
        FigureCanvasAgg(figure).draw()
        texts = {t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text"))}
        assert not any("$" in text.replace(r"\$", "") for text in texts)


def test_a_picture_of_the_first_classes_says_so():
    rng = np.random.default_rng(0)
    k = 14
    rates = rng.dirichlet(np.ones(k) + 9 * np.eye(k)[0], (2, 50, k))
    names = [f"class {j}" for j in range(k)]
    draws = xr.DataArray(rates, dims=("chain", "draw", "true_class", "observed_class"))
    group = xr.Dataset({"noise_matrix": draws.assign_coords(true_class=names)})
    tree = xr.DataTree.from_dict({"posterior": group, "prior": group})
    figure, frame = plots.prior_and_posterior(tree)
    assert "the first 12 of 14 classes" in figure.get_supxlabel()
    assert frame["true"].nunique() == k
