"""What import-linter cannot say: nobody reads or writes another object's underscored names."""

import ast
from pathlib import Path

import popf

PACKAGE = Path(popf.__file__).parent
# Public, though underscored: the methods of named tuples.
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
# Numba has no other door for a cache of one's own.
ALLOWED = {("jit.py", "compiled._cache")}


def is_private(name):
    return name.startswith("_") and not name.endswith("__") and name not in NAMED_TUPLE


def is_own(node):
    """Whether an object is the one whose method this is."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def defined_names(tree):
    """Names that a module's own classes and functions have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and is_own(node.value):
            yield node.attr


def private_accesses(tree):
    own = set(defined_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not is_own(node.value):
            if is_private(node.attr) and node.attr not in own:
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("popf"):
            yield from ((node.lineno, a.name) for a in node.names if is_private(a.name))


def test_the_check_finds_private_names():
    source = (
        "from popf.io import _a\nforest._codes = model._metric\nself._x = other._x\nt._replace()"
    )
    assert len(list(private_accesses(ast.parse(source)))) == 3


def test_no_module_touches_private_names_of_another():
    found = {
        (path.name, access): f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        for line, access in private_accesses(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert {access: where for access, where in found.items() if access not in ALLOWED} == {}
