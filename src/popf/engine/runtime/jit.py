"""Compile kernels, and cache them on disk.

Numba's own cache checks only the source file of the kernel itself, and trusts what it reads. Here the name of a
cached file contains a hash of the sources that the kernel was compiled from: its module and all modules of the
package that this one imports, directly or indirectly. So a change recompiles the kernels that depend on it, and
no others. A checksum of name and content detects files that are damaged or belong to another kernel; they are
deleted, and the kernel is compiled again.
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

from popf.engine.structures import ceil_div

Function = TypeVar("Function", bound=Callable[..., Any])

# Only at the beginning of a line: imports for type checkers are indented.
_IMPORT = re.compile(r"^(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+([\w.]+))", re.M)


def jit(function: Function) -> Function:
    """Compile `function` on first use, without the GIL, and cache it on disk if there is a writable folder."""
    # Kernels are never called from C: the wrapper for that would only cost compile time.
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(**options)(function)
    if compiled is not function:  # they are the same with NUMBA_DISABLE_JIT
        with suppress(RuntimeError):
            compiled._cache = KernelCache(function)
    return compiled  # type: ignore[no-any-return]


def helper(function: Function) -> Function:
    """Let kernels call `function`, which is inlined into each of them.

    Numba inlines the source, so helpers are never compiled alone: that saves a tenth of the time that kernels
    take to compile. Called from Python, helpers run as plain Python.
    """
    compiled: Any = numba.njit(inline="always")(function)
    if compiled is not function:  # they are the same with NUMBA_DISABLE_JIT
        # Numba reads the type and the options of what a kernel calls from these attributes. The dispatcher,
        # which the type refers to weakly, would compile what Python calls.
        function.__dict__.update(
            compiled=compiled,
            _numba_type_=numba.typeof(compiled),
            py_func=function,
            targetoptions=compiled.targetoptions,
        )
    return function


helper(ceil_div)


class _PauseGarbageCollection(event.Listener):
    """Pauses the garbage collector while one of our kernels is compiled.

    Numba creates millions of long-lived objects, and traversing them repeatedly takes a tenth of the time. Only
    one thread compiles at a time, so the counter needs no lock.
    """

    def __init__(self) -> None:
        self._depth = 0  # compilations are nested: kernels compile what they call
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


event.register("numba:compile", _PauseGarbageCollection())


class KernelCache(FunctionCache):
    """Compiled versions of one kernel, one file per signature and type of processor.

    Raises RuntimeError if neither the folder beside the source nor the user's cache is writable.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func = function
        self._impl = CompileResultCacheImpl(function)
        self._cache_path = self._impl.locator.get_cache_path()
        name = re.sub("[<>]", "", f"{function.__module__}.{function.__qualname__}")
        self._files = Path(self._cache_path) / name
        sources = sorted(sources_of(function.__module__))
        self._sources = _short_hash("".join(_read(path)[0] for path in sources))
        self.enable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled version; return None if there is none, or if it is damaged."""
        target_context.refresh()
        path = self._path(sig, target_context.codegen())
        try:
            checksum, content = path.read_bytes().split(b"\n", 1)
            if checksum != _checksum(path, content):
                raise ValueError("damaged")
            return self._impl.rebuild(target_context, pickle.loads(content))
        except FileNotFoundError:
            return None
        except Exception:  # any error: compile the source instead
            _delete(path)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled version, if possible, and delete those of earlier sources."""
        if not self._impl.check_cachable(data):
            return
        path = self._path(sig, data.codegen)
        content = dumps(self._impl.reduce(data))
        new = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            self._impl.locator.ensure_cache_path()
            new.write_bytes(_checksum(path, content) + b"\n" + content)
            new.replace(path)
        except OSError:  # the disk is full, or the folder is no longer writable
            _delete(new)
        for old in path.parent.glob(f"{self._files.name}.*.nbk"):
            if not old.name.startswith(f"{self._files.name}.{self._sources}."):
                _delete(old)

    def _path(self, sig: Any, codegen: Any) -> Path:
        key = sys.implementation.cache_tag, numba.__version__, self._index_key(sig, codegen)
        return self._files.with_name(
            f"{self._files.name}.{self._sources}.{_short_hash(repr(key))}.nbk"
        )


def sources_of(module: str) -> set[Path]:
    """Return the files of a module and of all modules of its package that it depends on."""
    package, found, waiting = module.partition(".")[0], set(), [module]
    while waiting:
        path = _path_of(waiting.pop())
        if path is not None and path not in found:
            found.add(path)
            waiting += [name for name in _read(path)[1] if name.partition(".")[0] == package]
    return found


@cache
def _read(path: Path) -> tuple[str, list[str]]:
    """Hash a source and list what it may import; cached, as imported modules stay in memory unchanged."""
    text = path.read_text(encoding="utf-8")
    names = []
    for module, parts, plain in _IMPORT.findall(text):
        names.append(module or plain)
        names += [f"{module}.{name}" for name in re.findall(r"\w+", parts)]
    return hashlib.sha256(text.encode()).hexdigest(), names


@cache
def _path_of(module: str) -> Path | None:
    """Return the file of a module, or None if the name is not a module."""
    package, *parts = module.split(".")
    path = Path(sys.modules[package].__file__ or "").parent.joinpath(*parts)
    candidates = path.with_suffix(".py"), path / "__init__.py"
    return next((file for file in candidates if file.is_file()), None)


def _checksum(path: Path, content: bytes) -> bytes:
    """Hash the content with the name of its file, so that a file under another name is damaged."""
    return hashlib.sha256(path.name.encode() + b"\n" + content).hexdigest().encode()


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _delete(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
