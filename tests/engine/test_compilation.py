"""How kernels are compiled, and kept on disk."""

import gc
import importlib
import itertools
import sys
from pathlib import Path

import numba
import pytest
from numba.core import event
from numba.core.caching import CompileResultCacheImpl

from popf.engine.runtime import jit
from popf.engine.runtime.jit import helper


@helper
def doubled(x):
    return 2 * x


@numba.njit
def call_doubled(x):
    return doubled(x) + doubled(1)


class Watch(event.Listener):
    """Notes whether the garbage collector is on."""

    def on_start(self, _):
        self.on = gc.isenabled()

    on_end = on_start


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
class TestCompilation:
    def test_helpers_run_in_kernels_and_in_python(self):
        assert call_doubled(3) == 8
        assert doubled(3) == 6  # though a version for integers has been compiled by now
        assert doubled("a") == "aa"

    @pytest.mark.parametrize("on", [True, False])
    @pytest.mark.parametrize("module", ["popf.engine.kernels", "somebody.else"])
    def test_the_garbage_collector_rests_for_our_kernels_and_is_left_as_it_was(
        self, module, on, request
    ):
        def kernel(x):
            return doubled(x) + 1

        kernel.__module__, watch = module, Watch()
        request.addfinalizer(gc.enable)
        (gc.enable if on else gc.disable)()
        with event.install_listener("numba:llvm_lock", watch):
            assert numba.njit(kernel)(2.0) == 5.0
        assert watch.on == (on and not module.startswith("popf."))
        assert gc.isenabled() == on
        with pytest.raises(numba.TypingError):
            numba.njit(kernel)(None)
        assert gc.isenabled() == on


# Kernels on disk ----------------------------------------------------------------------------------

CONSTANTS = "SIZE = 3\n"
HELPERS = """
from popf.engine.runtime.jit import helper
from {0}.constants import SIZE

@helper
def scaled(x):
    return SIZE * x
"""
KERNELS = """
from popf.engine.runtime.jit import jit
from {0} import helpers

scaled = helpers.scaled

@jit
def kernel(x):
    return scaled(x) + 1
"""
ALONE = """
from typing import TYPE_CHECKING

from popf.engine.runtime.jit import jit

if TYPE_CHECKING:
    from {0}.constants import SIZE

@jit
def kernel(x):
    return x - 1
"""
_numbers = itertools.count()


class Package:
    """A package of a few modules with kernels, imported anew as often as one likes."""

    def __init__(self, folder):
        self.name = f"toy{next(_numbers)}"
        self.folder = folder / self.name
        self.folder.mkdir()
        sources = {
            "__init__": "",
            "constants": CONSTANTS,
            "helpers": HELPERS,
            "kernels": KERNELS,
            "alone": ALONE,
        }
        for name, source in sources.items():
            self.path(name).write_text(source.format(self.name))

    def path(self, name):
        return self.folder / f"{name}.py"

    def compiled(self):
        """Whether ``kernels`` and ``alone`` are compiled in a new process, and what they give."""
        for name in [name for name in sys.modules if name.partition(".")[0] == self.name]:
            del sys.modules[name]
        importlib.invalidate_caches()
        jit._read.cache_clear()
        jit._path_of.cache_clear()
        kernels = [importlib.import_module(f"{self.name}.{n}").kernel for n in ("kernels", "alone")]
        values = tuple(kernel(2) for kernel in kernels)
        return tuple(sum(kernel.stats.cache_misses.values()) > 0 for kernel in kernels), values

    def cached(self):
        return sorted(self.folder.rglob("*.nbk"))


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Package(tmp_path)
    assert made.compiled() == ((True, True), (7, 1))
    assert made.compiled() == ((False, False), (7, 1))
    return made


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
class TestKernelsOnDisk:
    @pytest.mark.parametrize("changed", ["constants", "helpers", "kernels"])
    def test_a_change_compiles_its_dependents_and_nothing_else(self, package, changed):
        source = package.path(changed).read_text()
        package.path(changed).write_text(source.replace("SIZE = 3", "SIZE = 5") + "# changed\n")
        value = 11 if changed == "constants" else 7
        before = package.cached()
        assert package.compiled() == ((True, False), (value, 1))
        assert package.compiled() == ((False, False), (value, 1))
        # What was compiled from the former source is gone.
        assert len(package.cached()) == 2
        assert len(set(before) & set(package.cached())) == 1

    @pytest.mark.parametrize(
        "damage",
        [
            lambda path, content: b"",
            lambda path, content: content[: len(content) // 2],
            lambda path, content: content[:1000] + bytes([content[1000] ^ 16]) + content[1001:],
            lambda path, content: jit._checksum(path, b"junk") + b"\njunk",
        ],
        ids=["empty", "truncated", "a bit", "no kernel"],
    )
    def test_a_damaged_file_is_compiled_anew(self, package, damage):
        for path in package.cached():
            path.write_bytes(damage(path, path.read_bytes()))
        assert package.compiled() == ((True, True), (7, 1))
        assert package.compiled() == ((False, False), (7, 1))

    def test_a_valid_file_under_the_name_of_another_kernel_is_not_loaded(self, package):
        one, other = package.cached()
        contents = other.read_bytes(), one.read_bytes()
        for path, content in zip((one, other), contents, strict=True):
            path.write_bytes(content)
        assert package.compiled() == ((True, True), (7, 1))

    def test_a_file_that_cannot_be_written_is_no_error(self, package, monkeypatch):
        for path in package.cached():
            path.unlink()

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", full)
            assert package.compiled() == ((True, True), (7, 1))
        assert package.cached() == []
        assert package.compiled() == ((True, True), (7, 1))

    def test_no_folder_to_write_to_is_no_error(self, package, monkeypatch):
        monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
        assert package.compiled()[1] == (7, 1)

    def test_other_signatures_are_kept_beside(self, package):
        kernel = sys.modules[f"{package.name}.alone"].kernel
        assert kernel(2.5) == 1.5
        assert len(package.cached()) == 3
        package.compiled()
        again = sys.modules[f"{package.name}.alone"].kernel
        assert again(2.5) == 1.5
        assert sum(again.stats.cache_misses.values()) == 0


def test_engine_kernels_depend_on_what_their_modules_import():
    import popf

    def sources(module):
        root = Path(popf.__file__).parent
        return {path.relative_to(root).as_posix() for path in jit.sources_of(module)}

    prim = sources("popf.engine.mst.prim")
    assert {"engine/mst/prim.py", "engine/structures.py", "engine/runtime/jit.py"} <= prim
    assert not any("soft" in path or "boruvka" in path for path in prim)
    # Wherever the kernel is, and wherever what it compiles in.
    assert "engine/mst/boruvka.py" in sources("popf.engine.gpu.backend")
    assert "engine/runtime/jit.py" in sources("popf.dask.spanning")
    assert not any(path.startswith("dask") for path in sources("popf.engine.training"))
