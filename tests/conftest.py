"""Settings of the whole suite: float64, quick compilation, a cache that outlives the run."""

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
from collections import defaultdict
from functools import cache
from pathlib import Path

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis.configuration import set_hypothesis_home_dir

# nothing that is imported is garbage: see pytest_collection_finish
gc.disable()

# plain kernels, and no program compiled in pieces: other cores have other workers' tests
_QUICK_FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"

# pytest imports this file before any test module; the library restores what it changes
jax.config.update("jax_enable_x64", True)
# compilation is most of the suite's time; JAX_DISABLE_MOST_OPTIMIZATIONS=0 runs what users run
QUICK = "JAX_DISABLE_MOST_OPTIMIZATIONS" not in os.environ
if QUICK:
    jax.config.update("jax_disable_most_optimizations", True)
    # half of what is left; later versions no longer know them
    if jax.__version_info__ < (0, 11):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_QUICK_FLAGS}"

#: Seconds that a test may take without a mark.
LONG = 5.0
#: Number of files that are listed by how long their tests take.
LISTED = 25
#: Where a container's limit of memory stands, by version of control groups.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

hypothesis.settings.register_profile(
    "nbmodels",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=20,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("nbmodels")


def pytest_configure(config):
    if hasattr(config, "cache"):
        jax.config.update("jax_compilation_cache_dir", str(config.cache.mkdir("jax")))
        # the many single operations too: a module forgets them at its end
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        # of the processes that tests start
        os.environ["NBMODELS_CACHE"] = str(config.cache.mkdir("programs"))
        set_hypothesis_home_dir(config.cache.mkdir("hypothesis"))


def pytest_collection_finish():
    """What is imported stays: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Without ``random_state`` an estimator draws from NumPy's global state: the same every time.

    Before fixtures of any scope, so that a test's outcome hangs on no other test.
    """
    np.random.seed(0)  # noqa: NPY002 (the global state is what is seeded)


@pytest.fixture
def key():
    return jax.random.key(0)


@pytest.fixture(scope="session")
def platform():
    """Items and users of the simulation of Maystre 2021, four classes."""
    from nbmodels.papers import maystre2021

    return maystre2021.simulate(np.random.default_rng(0), M=40, N=30, K=4, S=4)


@pytest.fixture
def optimised():
    """Compile as users do, where a test computes for longer than it compiles."""
    if QUICK:
        jax.config.update("jax_disable_most_optimizations", False)
    yield
    if QUICK:
        jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture
def within():
    """Run a script in a new process that may hold so many bytes of data; what it prints."""

    def run(limit, script):
        # the child limits itself: a fork of this process would copy JAX's threads
        own = f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({limit}, {limit}))\n"
        path = os.pathsep.join(filter(None, sys.path))
        # a GPU's driver takes host memory of its own
        where = {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", own + textwrap.dedent(script)],
            env=os.environ | where,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def resident():
    """Bytes of memory that this process holds now; infinite where that cannot be read."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return float("inf")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@cache
def share_of_memory():
    """Bytes that a worker may hold: half of the memory is for all workers, 2 GiB for one at least.

    A worker that forgets its programs traces and reads them again.
    """
    limits = [
        int(text)
        for path in map(Path, LIMITS)
        if path.exists() and (text := path.read_text().strip()).isdigit()
    ]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max(min(limits, default=0) // (2 * workers), 2 * 2**30)


@pytest.fixture(scope="module", autouse=True)
def _release_memory():
    """Forget compiled programs once they fill the memory: hundreds of shapes would."""
    yield
    if resident() > share_of_memory():
        jax.clear_caches()
        # glibc keeps what is freed: a process that was large once would forget after each module
        if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
            libc.malloc_trim(0)


def pytest_terminal_summary(terminalreporter):
    """In continuous integration, what to make smaller or to mark as slow; it fails nothing."""
    if not os.environ.get("CI"):
        return
    reports = (r for group in terminalreporter.stats.values() for r in group)
    spent, by_file = defaultdict(float), defaultdict(float)
    for report in reports:
        if hasattr(report, "duration"):
            by_file[report.nodeid.partition("::")[0]] += report.duration
            if "slow" not in getattr(report, "keywords", ()):
                spent[report.nodeid] += report.duration
    terminalreporter.section(f"{sum(by_file.values()) / 60:.0f} minutes of workers' time, by file")
    for name in sorted(by_file, key=by_file.get, reverse=True)[:LISTED]:
        terminalreporter.write_line(f"{by_file[name]:6.0f} s  {name}")
    long = sorted(((s, name) for name, s in spent.items() if s > LONG), reverse=True)
    if long:
        terminalreporter.section(f"{len(long)} unmarked tests took over {LONG:g} s")
        for seconds, name in long:
            terminalreporter.write_line(f"{seconds:6.1f} s  {name}")
