"""Where things stand that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Real data beside the checkout; tests that need them skip where they are absent.
SHARED = ROOT.parent / "shared" / "data"
EXPECTED = ROOT / "tests" / "papers" / "expected"
