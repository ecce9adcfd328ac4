"""One way to compile a kernel, and compiled kernels on disk.

Numba's own cache compares a kernel with its own source file only, and trusts what it reads. Here the name of a
file tells from which sources the kernel was compiled: its module's, and those of all modules of the package
that this one imports, directly or not. So a change makes its dependents compile anew, and nothing else. A
checksum tells whether a file is whole; one that is not is deleted, and the kernel compiled anew.
"""

import gc
import hashlib
import pickle
import re
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

Function = TypeVar("Function", bound=Callable[..., Any])

# At the beginning of a line: imports for type checkers are indented.
_IMPORT = re.compile(r"^(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+([\w.]+))", re.M)


def jit(function: Function) -> Function:
    """Compile `function` on first use, without the GIL, cached on disk where there is a folder for it."""
    # Nobody calls kernels from C: the entry for that would only take time to compile.
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(**options)(function)
    if compiled is not function:  # as it is with NUMBA_DISABLE_JIT
        with suppress(RuntimeError):
            compiled._cache = KernelCache(function)
    return compiled  # type: ignore[no-any-return]


def helper(function: Function) -> Function:
    """Let kernels call `function`, which is compiled into those that do.

    It has no entry from Python, and nothing on disk, both of which take longer to make than most helpers
    themselves. Called from Python it runs as it is written.
    """
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(nogil=True, **options)(function)
    if compiled is not function:  # as it is with NUMBA_DISABLE_JIT
        # Numba asks values for their type. It would crash if the compiled one were called from Python.
        function.__dict__.update(compiled=compiled, _numba_type_=numba.typeof(compiled))
    return function


class _NoCollection(event.Listener):
    """Lets the garbage collector rest while a kernel of ours is compiled.

    Numba makes objects by the million that stay, and going through them again and again takes a tenth
    of the time. Only one thread compiles at a time, so no two of them count here.
    """

    def __init__(self) -> None:
        self._depth = 0  # kernels compile what they call
        self._was_enabled = False

    def on_start(self, event: event.Event) -> None:
        if self._depth > 0:
            self._depth += 1
        elif event.data["dispatcher"].py_func.__module__.startswith("popf."):
            self._depth, self._was_enabled = 1, gc.isenabled()
            gc.disable()

    def on_end(self, event: event.Event) -> None:
        if self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0 and self._was_enabled:
            gc.enable()


event.register("numba:compile", _NoCollection())


class KernelCache(FunctionCache):
    """The compiled versions of one kernel, one file for each signature and kind of processor.

    Raises RuntimeError if there is no folder to write to: beside the source, else the user's cache.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func = function
        self._impl = CompileResultCacheImpl(function)
        self._cache_path = self._impl.locator.get_cache_path()
        name = re.sub("[<>]", "", f"{function.__module__}.{function.__qualname__}")
        self._files = Path(self._cache_path) / name
        sources = sorted(sources_of(function.__module__))
        self._sources = _short("".join(_read(path)[0] for path in sources))
        self.enable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a version; None if there is none, or none that is whole."""
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        try:
            checksum, content = path.read_bytes().split(b"\n", 1)
            if checksum != _checksum(content):
                raise ValueError("damaged")
            return self._impl.rebuild(target_context, pickle.loads(content))
        except FileNotFoundError:
            return None
        except Exception:  # whatever is wrong with it: there is a source to compile
            _delete(path)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a version, if that is possible, and delete those of former sources."""
        if not self._impl.check_cachable(data):
            return
        path = self._path(sig, data.codegen)
        content = dumps(self._impl.reduce(data))
        new = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            self._impl.locator.ensure_cache_path()
            new.write_bytes(_checksum(content) + b"\n" + content)
            new.replace(path)
        except OSError:  # a full disk, or a folder that was writable before
            _delete(new)
        for old in path.parent.glob(f"{self._files.name}.*.nbk"):
            if not old.name.startswith(f"{self._files.name}.{self._sources}."):
                _delete(old)

    def _path(self, sig: Any, codegen: Any) -> Path:
        key = sys.implementation.cache_tag, numba.__version__, self._index_key(sig, codegen)
        return self._files.with_name(f"{self._files.name}.{self._sources}.{_short(repr(key))}.nbk")


def sources_of(module: str) -> set[Path]:
    """Return the files of a module and of all modules of its package that it imports, directly or not."""
    package, found, waiting = module.partition(".")[0], set(), [module]
    while waiting:
        path = _path_of(waiting.pop())
        if path is not None and path not in found:
            found.add(path)
            waiting += [name for name in _read(path)[1] if name.partition(".")[0] == package]
    return found


@cache
def _read(path: Path) -> tuple[str, list[str]]:
    """Hash a source, and list what it may import; read once, for what was imported stays in memory."""
    text = path.read_text(encoding="utf-8")
    names = []
    for module, parts, plain in _IMPORT.findall(text):
        names.append(module or plain)
        names += [f"{module}.{name}" for name in re.findall(r"\w+", parts)]
    return hashlib.sha256(text.encode()).hexdigest(), names


@cache
def _path_of(module: str) -> Path | None:
    """Return the file of a module of a package, None for what is no module."""
    package, *parts = module.split(".")
    path = Path(sys.modules[package].__file__ or "").parent.joinpath(*parts)
    candidates = path.with_suffix(".py"), path / "__init__.py"
    return next((file for file in candidates if file.is_file()), None)


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _delete(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
