from __future__ import annotations

import logging
import os
import subprocess
import sys

import numpy as np
import pytest

from kinfold import kernels
from kinfold.errors import Cancelled, DataError, PolicyError, Unreachable
from kinfold.partition import mdav
from kinfold.rows.points import Nested, Ordered, Points
from uncompiled import PLAIN

compiles = pytest.mark.skipif(PLAIN, reason="the compiler is off")


@pytest.mark.parametrize(
    ("x", "k", "error"),
    [
        (np.ones((4, 2)), 1, PolicyError),
        (np.ones((4, 2)), 2.0, PolicyError),
        (np.ones((4, 2)), True, PolicyError),
        (np.ones((4, 2)), 5, Unreachable),
        (np.ones(4), 2, DataError),
        (np.ones((4, 0)), 2, DataError),
        (np.array([[1.0], [np.nan]]), 2, DataError),
        (np.array([[1.0], [np.inf]]), 2, DataError),
        (np.array([[1.0], [2e150]]), 2, DataError),
        (np.array([["a"], ["b"]]), 2, DataError),
        (np.array([[None], [1]], object), 2, DataError),
        (np.ones((4, 2), complex), 2, DataError),
    ],
)
def test_bad_input_is_refused_before_any_work(x, k, error):
    with pytest.raises(error):
        mdav(x, k)


@pytest.mark.parametrize("n", range(3, 12))
def test_sizes_are_k_but_for_the_last_cluster(n):
    sizes = np.bincount(mdav(np.arange(n, dtype=float)[:, None] ** 2, 3)).tolist()
    assert sizes[:-1] == [3] * (len(sizes) - 1)
    assert 3 <= sizes[-1] <= 5


def test_equal_distances_go_to_the_lowest_row():
    assert mdav(np.zeros((9, 2)), 3).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_listener_hears_the_end_and_can_stop_a_run():
    x = np.random.default_rng(0).normal(size=(4000, 3))
    heard = []
    mdav(x, 5, progress=lambda done, total: heard.append((done, total)))
    assert heard == sorted(heard)
    assert heard[-1] == (4000, 4000)

    def stop(done, total):
        raise Cancelled("stopped")

    for rows in (100, 4000):
        with pytest.raises(Cancelled):
            mdav(x[:rows], 5, progress=stop)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Points(np.zeros((2, 1)), np.zeros((3, 0), np.int32)),
        lambda: Points(np.zeros((2, 0)), np.zeros((2, 0), np.int32)),
        lambda: Points(np.zeros((2, 1)), np.zeros((2, 1), np.int32)),
        lambda: Points(np.zeros((2, 0)), np.array([[0], [4]], np.int32), (Nested.flat(4),)),
        lambda: Points(np.zeros((2, 0)), np.array([[0], [-1]], np.int32), (Ordered(3),)),
        lambda: Points(np.array([[np.nan], [0.0]]), np.zeros((2, 0), np.int32)),
        lambda: Nested(np.array([[0, 0, 0], [1, 1, 0], [2, 0, 0]], np.int32)),
        lambda: Nested(np.array([[0, 0], [1, 1]], np.int32)),
        lambda: Nested(np.array([[0, 0], [0, 0]], np.int32)),
    ],
)
def test_points_that_no_kernel_could_search_are_refused(make):
    with pytest.raises(DataError):
        make()


def test_small_tables_never_load_the_compiler():
    code = (
        "import sys, numpy as np, kinfold.partition as p; p.mdav(np.random.default_rng(0).normal(size=(900, 4)), 3);"
        "sys.exit('numba' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)}).returncode
        == 0
    )


def test_warmup_loads_every_kernel_and_says_how_far_it_is():
    heard = []
    kernels.warmup(lambda done, total: heard.append((done, total)))
    assert heard == [(done, len(kernels.MODULES)) for done in range(len(kernels.MODULES) + 1)]
    assert all(f"kinfold.kernels.{name}" in sys.modules for name in kernels.MODULES)


@compiles
def test_a_first_call_says_that_it_compiles(monkeypatch, caplog, tmp_path):
    loaded = []
    monkeypatch.setattr(kernels, "machine_code", lambda: tmp_path)
    monkeypatch.setattr(kernels.importlib, "import_module", loaded.append)
    monkeypatch.delitem(sys.modules, "kinfold.kernels.mdav_flat", raising=False)
    with caplog.at_level(logging.INFO, "kinfold"):
        kernels.load("mdav_flat")
    assert "compiling mdav_flat" in caplog.text
    assert loaded == ["kinfold.kernels.mdav_flat"]


@compiles
def test_machine_code_older_than_a_source_is_thrown_away(tmp_path):

    old, new = tmp_path / "mdav_flat.advance-1.py311.nbi", tmp_path / "mdav_tree.advance-1.py311.nbi"
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, (1, 1))
    assert kernels._current(tmp_path) == tmp_path
    assert new.exists()
    assert not old.exists()


@compiles
def test_a_kernel_that_does_not_compile_leaves_the_collector_on(monkeypatch, tmp_path):
    import gc

    def broken(_name):
        assert not gc.isenabled()
        raise RuntimeError("no compiler")

    monkeypatch.setattr(kernels, "machine_code", lambda: tmp_path)
    monkeypatch.setattr(kernels.importlib, "import_module", broken)
    monkeypatch.delitem(sys.modules, "kinfold.kernels.mdav_flat", raising=False)
    with pytest.raises(RuntimeError, match="no compiler"):
        kernels.load("mdav_flat")
    assert gc.isenabled()


@compiles
def test_an_inner_kernel_called_from_python_runs_as_plain_python():
    from kinfold.kernels import exact_sums as exact

    assert type(exact.add).__name__ == "_Inner"
    sums, digits = np.zeros((1, exact.LIMBS), np.int64), np.zeros(exact.DIGITS, np.int64)
    exact.add(sums, 0, int(np.float64(1.5).view(np.int64)), 1)
    assert exact.rounded(sums, 0, digits) == 1.5
