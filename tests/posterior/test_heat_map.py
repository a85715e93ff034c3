import io

import matplotlib
import numpy as np
import pytest
from marks import slow
from matplotlib.backends.backend_agg import FigureCanvasAgg

from nbmodels.posterior.plots import noise_heat_map


def some_noise(k, seed=0):
    rng = np.random.default_rng(seed)
    mean = 0.8 * np.eye(k) + 0.2 * rng.dirichlet(np.full(k, 0.2), k).T
    return mean, np.maximum(mean - 0.02, 0), np.minimum(mean + 0.02, 1)


@pytest.mark.parametrize("k", [2, 3, 8, 14, 20, slow(30)])
def test_heat_map_can_be_drawn_and_read(k):
    mean, low, high = some_noise(k)
    names = [f"a class called {i}" for i in range(k)]
    figure, frame = noise_heat_map(mean, low, high, names)
    canvas = FigureCanvasAgg(figure)
    picture = io.BytesIO()
    canvas.print_png(picture)
    assert picture.getvalue().startswith(b"\x89PNG")

    axes = figure.axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == names
    assert [t.get_text() for t in axes.get_yticklabels()] == names
    # no two numbers overlap: no text is wider than its cell
    renderer = canvas.get_renderer()
    left, right = axes.transData.transform([(0, 0), (1, 0)])[:, 0]
    widths = [t.get_window_extent(renderer).width for t in axes.texts]
    assert max(widths) < right - left
    assert len(frame) == k * k


def test_table_names_the_classes():
    mean = np.array([[0.9, 0.3], [0.1, 0.7]])
    _, frame = noise_heat_map(mean, mean - 0.05, mean + 0.05, ["cat", "dog"])
    cell = frame[(frame["true"] == "dog") & (frame["observed"] == "cat")].iloc[0]
    assert tuple(cell[["mean", "low", "high"]]) == pytest.approx((0.3, 0.25, 0.35))
    assert frame.groupby("true")["mean"].sum().tolist() == pytest.approx([1, 1])


def test_every_cell_of_a_small_matrix_has_its_interval():
    mean, low, high = some_noise(3)
    figure, _ = noise_heat_map(mean, low, high, list("abc"))
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert sum(" to " in t for t in texts) == 9


def test_many_classes_show_what_matters():
    mean, low, high = some_noise(25)
    figure, frame = noise_heat_map(mean, low, high, list(range(25)))
    off = frame[frame["true"] != frame["observed"]]
    assert len(figure.axes[0].texts) == 2 * (25 + (off["mean"] >= 0.02).sum())


def test_long_names_are_cut_in_the_figure_only():
    mean, low, high = some_noise(2)
    figure, frame = noise_heat_map(mean, low, high, ["x" * 80, "y"])
    assert len(figure.axes[0].get_xticklabels()[0].get_text()) < 30
    assert "x" * 80 in set(frame["true"])


def test_names_that_differ_stay_different():
    for names in (
        [f"Home & Garden > Kitchen > {what}" for what in ("Pans", "Pots")],
        [f"Home & Garden > {what} > Pans and Pots of Steel" for what in ("Kitchen", "Camping")],
    ):
        figure, _ = noise_heat_map(*some_noise(2), names)
        shown = [t.get_text() for t in figure.axes[0].get_xticklabels()]
        assert len(set(shown)) == 2
        assert max(map(len, shown)) < max(map(len, names))


def test_no_global_state():
    before = dict(matplotlib.rcParams), matplotlib.get_backend()
    noise_heat_map(*some_noise(3), list("abc"))
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []
    assert (dict(matplotlib.rcParams), matplotlib.get_backend()) == before


def test_shapes_are_checked():
    mean, low, high = some_noise(3)
    with pytest.raises(ValueError, match="low"):
        noise_heat_map(mean, low[:2], high, list("abc"))


def test_notebooks_show_it_although_pyplot_does_not_know_it():
    figure, _ = noise_heat_map(*some_noise(3), list("abc"))
    assert figure._repr_png_().startswith(b"\x89PNG")
