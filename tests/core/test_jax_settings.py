"""Compiled programs are kept on disk while the library computes, and at no other time."""

import os
import threading
import warnings
import zlib

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from marks import slow

from nbmodels import NoisyBernoulliNB
from nbmodels.core import jax_settings, program_folder
from nbmodels.core.jax_settings import SWITCH, computing, kept_programs

CACHE = [
    "jax_compilation_cache_dir",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_enable_xla_caches",
]


def settings():
    return {name: getattr(jax.config, name) for name in (*CACHE, "jax_enable_x64")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of programs, as of a user who has not configured JAX's cache."""
    before = settings()
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
    reset_cache()
    monkeypatch.setenv(SWITCH, str(tmp_path / "programs"))
    yield tmp_path / "programs"
    for name, value in before.items():
        jax.config.update(name, value)
    reset_cache()


def compile_one():
    """A program that no other test compiles."""
    number = float(np.random.default_rng().random())
    jax.jit(lambda x: x * number + 1)(np.ones(3)).block_until_ready()


def programs(folder):
    return sorted(p.name for p in folder.glob("*-cache"))


def test_programs_are_kept_inside_the_scope_only(folder):
    with kept_programs():
        compile_one()
    assert len(programs(folder)) == 1
    compile_one()
    assert len(programs(folder)) == 1


def test_settings_are_restored(folder):
    before = settings()

    def fail():
        with computing(double=False), computing(double=True):
            assert jax.config.jax_compilation_cache_dir == str(folder)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert settings() == before


def test_products_of_single_precision_are_not_rounded_further(folder):
    """GPUs would round their factors to 11 bits."""
    ones = np.ones((2, 2), np.float32)

    def asked():
        return "HIGHEST" in str(jax.make_jaxpr(lambda a, b: a @ b)(ones, ones))

    with computing(double=False):
        assert asked()
    assert not asked()


def test_the_folder_is_the_users_alone_and_limited_in_size(folder):
    with kept_programs():
        compile_one()
        assert 0 < jax.config.jax_compilation_cache_max_size < 1e9
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_oldest_programs_go_first(folder, monkeypatch):
    with kept_programs():
        compile_one()
    (first,) = programs(folder)
    size = (folder / first).stat().st_size
    monkeypatch.setattr(jax_settings, "_MOST_BYTES", int(1.5 * size))
    with kept_programs():
        compile_one()
    assert len(programs(folder)) == 1
    assert programs(folder) != [first]


def test_a_folder_named_later_by_the_user_is_taken(folder, tmp_path):
    with kept_programs():
        compile_one()
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    compile_one()
    assert len(programs(tmp_path / "own")) == 1


def test_a_configured_cache_is_left_alone(folder, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    before = settings()
    with kept_programs():
        assert settings() == before
        compile_one()  # quick, and the user keeps what took a second
    assert not folder.exists()
    assert not programs(tmp_path / "own")


def test_a_cache_turned_off_stays_off(folder, monkeypatch):
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        with kept_programs():
            compile_one()
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    monkeypatch.setenv(SWITCH, "0")
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir is None
        compile_one()
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_is_no_error(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(SWITCH, str(tmp_path / "file" / "programs"))
    with kept_programs(), warnings.catch_warnings(action="error"):
        compile_one()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_no_error(folder):
    folder.mkdir(mode=0o500)
    with kept_programs(), warnings.catch_warnings(action="error"):
        compile_one()


def test_a_full_disk_is_no_error(folder, monkeypatch):
    monkeypatch.setattr(program_folder.shutil, "disk_usage", lambda _: type("", (), {"free": 0}))
    with kept_programs(), warnings.catch_warnings(action="error"):
        compile_one()
    assert not programs(folder)


def test_what_a_killed_process_left_is_removed(folder):
    folder.mkdir()
    (folder / "half-cache").write_bytes(b"ha")
    with kept_programs():
        compile_one()
    assert len(programs(folder)) == 1
    assert "half-cache" not in programs(folder)


def test_threads_share_the_scope(folder):
    """The last one to leave restores the settings."""
    before, inside, go = settings(), threading.Event(), threading.Event()

    def other():
        with kept_programs():
            inside.set()
            go.wait(10)

    thread = threading.Thread(target=other)
    with kept_programs():
        thread.start()
        assert inside.wait(10)
    assert jax.config.jax_compilation_cache_dir == str(folder)
    go.set()
    thread.join()
    assert settings() == before


FIT = """
import hashlib, jax, numpy as np
from nbmodels import NoisyBernoulliNB

traced = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, **about: traced.append(about["fun_name"]) if "jaxpr_trace" in event else None
)
rng = np.random.default_rng(0)
x, y = rng.integers(0, 2, (40, 3)), rng.integers(0, 2, 40)
found = NoisyBernoulliNB.published().fit(x, y).predict_proba(x)
print(len(set(traced)), hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest())
"""


#: For a maximum of the likelihood of full covariances, which is by LAPACK.
NORMAL = "NoisyBernoulliNB.published()", "RobustNDA.published(solver='ml')"


@pytest.mark.slow
def test_a_second_process_traces_nothing(within, tmp_path, monkeypatch):
    """It computes the same, and the one switch turns that off."""
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv(SWITCH, str(tmp_path))
    first, second = (within(8 << 30, FIT).split() for _ in range(2))
    monkeypatch.setenv(SWITCH, "0")
    off = within(8 << 30, FIT).split()
    assert int(first[0]) > 2
    assert int(second[0]) == 0
    assert int(off[0]) == int(first[0])
    assert first[1] == second[1] == off[1]


@pytest.mark.slow
def test_a_second_process_finds_lapack(within, tmp_path, monkeypatch):
    """JAX loads it as it lowers a call of it, and without it a program that is found crashes."""
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv(SWITCH, str(tmp_path))
    full = FIT.replace(*NORMAL).replace("import NoisyBernoulliNB", "import RobustNDA")
    first, second = (within(8 << 30, full).split() for _ in range(2))
    assert any(
        b"lapack_" in zlib.decompress(f.read_bytes()) for f in tmp_path.glob("traced-*-cache")
    )
    assert first[1] == second[1]


@pytest.mark.parametrize(
    ("double", "own", "expected"), [(True, None, "cpu"), (False, None, None), (True, "gpu", "gpu")]
)
def test_double_precision_is_for_the_cpu_unless_a_device_is_set(monkeypatch, double, own, expected):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with jax.default_device(own), computing(double):
        device = jax.config.jax_default_device
        assert getattr(device, "platform", device) == expected
    assert jax.config.jax_default_device is None


def test_a_process_without_a_cpu_computes_where_it_can(monkeypatch):
    def devices(platform):
        raise RuntimeError(f"Unknown backend {platform}")

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "devices", devices)
    with computing(True):
        assert jax.config.jax_default_device is None


@pytest.mark.parametrize("training", ["joint", slow("auto")])
def test_a_small_fit_is_the_same_beside_a_gpu(training, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    x = rng.random((60, 4)) < np.where(y, 0.8, 0.2)[:, None]
    alone = NoisyBernoulliNB(training=training, random_state=0).fit(x, y)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    beside = NoisyBernoulliNB(training=training, random_state=0).fit(x, y)
    np.testing.assert_array_equal(alone.label_posterior_, beside.label_posterior_)
    assert beside.predict_proba(x).shape == (60, 2)
