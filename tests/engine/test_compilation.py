"""How kernels are compiled, and that they run without it."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core import event

from popf.engine.runtime.jit import helper


@helper
def doubled(x):
    return 2 * x


@numba.njit
def call_doubled(x):
    return doubled(x) + doubled(1)


class Watch(event.Listener):
    """Notes whether the garbage collector is on."""

    def __init__(self):
        self.seen = []

    def on_start(self, _):
        self.seen.append(gc.isenabled())

    on_end = on_start


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
class TestCompilation:
    def test_helpers_run_in_kernels_and_in_python(self):
        assert call_doubled(3) == 8
        assert doubled(3) == 6  # though a version for integers has been compiled by now
        assert doubled("a") == "aa"

    @pytest.mark.parametrize("on", [True, False])
    def test_the_garbage_collector_rests_and_is_left_as_it_was(self, on):
        def kernel(x):
            return doubled(x) + 1

        kernel.__module__ = "popf.engine.kernels"
        watch, before = Watch(), gc.isenabled()
        try:
            (gc.enable if on else gc.disable)()
            with event.install_listener("numba:llvm_lock", watch):
                assert numba.njit(kernel)(2.0) == 5.0
            assert watch.seen
            assert not any(watch.seen)
            assert gc.isenabled() == on
        finally:
            (gc.enable if before else gc.disable)()

    def test_the_garbage_collector_rests_for_our_kernels_only(self):
        watch = Watch()
        with event.install_listener("numba:llvm_lock", watch):
            assert numba.njit(lambda x: x + 1)(2.0) == 3.0
        assert watch.seen
        assert all(watch.seen)

    def test_the_garbage_collector_is_back_after_an_error(self):
        def kernel(x):
            return doubled(x).no_such_attribute

        kernel.__module__ = "popf.engine.kernels"
        with pytest.raises(numba.TypingError):
            numba.njit(kernel)(2.0)
        assert gc.isenabled()


#: What runs in moments without compilation, one test or more for each kernel.
WITHOUT_JIT = (
    "tests/engine/test_forests.py::TestDistinctPoints",
    "tests/engine/test_forests.py::TestSpaceTree::test_holds_all_points_in_tight_boxes",
    "tests/engine/test_forests.py::TestNeighbourLists::test_are_complete_below_the_horizon",
    "tests/engine/test_competition.py",
    "tests/engine/test_simd.py",
    "tests/engine/test_exactness.py::TestAgainstTheDefinition::test_two_samples",
    "tests/engine/test_exactness.py::TestAgainstTheDefinition::test_evenly_spaced_on_a_line",
)


@pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="runs itself without JIT, and there is none already"
)
def test_the_kernels_run_without_compilation():
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *WITHOUT_JIT]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
