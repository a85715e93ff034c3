"""Tables of events, of which the rows of an item confirm its label."""

import numpy as np
import pandas as pd

from nbmodels.cli.roles import repeated_items


def test_rows_that_repeat_an_item_with_its_label_are_noticed():
    rng = np.random.default_rng(0)
    item, label = rng.integers(0, 40, 200), rng.integers(0, 2, 40)
    events = pd.DataFrame({"user": rng.integers(0, 30, 200), "item": item, "label": label[item]})
    assert repeated_items(events, "label", (None,)) == "item"
    assert repeated_items(events, "label", ("item",)) is None
    noisy = events.assign(label=rng.integers(0, 2, 200))
    assert repeated_items(noisy, "label", ()) is None
    colours = pd.DataFrame({"colour": np.arange(200) % 3, "label": (np.arange(200) % 3 > 0)})
    assert repeated_items(colours, "label", ()) is None


def test_copies_of_whole_rows_are_no_events():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"size": rng.normal(size=60), "label": rng.choice(["ant", "bee"], 60)})
    tripled = pd.concat([rows] * 3, ignore_index=True)
    assert repeated_items(tripled, "label", ()) is None
    # and cells that hold lists are no items
    assert repeated_items(tripled.assign(list=[[1]] * 180), "label", ()) is None
