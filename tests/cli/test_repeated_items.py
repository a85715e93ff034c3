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
