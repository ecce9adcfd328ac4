"""How every column of a table is read, and what is wrong with it."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from popf.formatting import counted
from popf.tables import Table
from popf.tables.cells import Kind

#: A column of text with more different values than this is no category if there are many for its rows.
MANY_VALUES = 50
#: How many rows a table must have, and how many values a column, before a column is called an id.
MANY_ROWS, MANY_GROUPS = 20, 10
_ID = re.compile(r"(?:^|[ _.-])(?:id|ID|Id)$|[a-z]I[dD]$")


class Column(NamedTuple):
    """How a column is read."""

    name: str
    role: str  # number or category for a feature, else target, id, dropped, weight, one per
    n_values: int  # different ones
    n_missing: int
    problem: str = ""  # why it cannot be used, with what to do about it
    remedy: str = ""  # the parameter that most likely mends it
    note: str = ""  # what should be looked at, but is no error

    @property
    def words(self) -> str:
        """The role; of a category with the number of its values."""
        n_values = counted(self.n_values, "value")
        return f"category, {n_values}" if self.role == "category" else self.role


def read_columns(
    table: Table, roles: Mapping[str, str], categorical: Collection[str] = ()
) -> list[Column]:
    """Tell how every column of a table is read.

    `roles` are those of columns that are no features; `categorical` are categories whatever they look like.
    """
    text = table.text()
    return [
        _read(table, name, text[name], roles.get(name), name in categorical) for name in table.names
    ]


def _read(table: Table, name: str, cells: Any, role: str | None, insisted: bool) -> Column:
    kind, n_rows = table.kind(cells), len(cells)
    n_missing = n_rows - kind.n_present
    if role is not None:
        return Column(name, role, kind.n_values, n_missing)
    role = "number" if kind.numbers and not insisted else "category"
    problem, remedy = ("", "") if insisted and kind.n_present else _problem(name, kind, n_rows)
    note = "" if problem or insisted else _note(name, kind, n_rows)
    return Column(name, role, kind.n_values, n_missing, problem, remedy, note)


def _problem(name: str, kind: Kind, n_rows: int) -> tuple[str, str]:
    """Find a column that is empty, a number or a date in disguise, a spoilt number, or a name."""
    drop, category, carried = f"`drop={[name]}`", f"`categorical={[name]}`", f"`id={[name]}`"
    if kind.n_present == 0:
        return f"column {name!r} holds nothing at all: leave it out by {drop}.", drop
    if kind.numbers:
        return "", ""
    looks_like = f"column {name!r} holds {kind.looks_like}, such as {kind.odd_cell!r}"
    if "date" in kind.looks_like:
        return (
            f"{looks_like}: put numbers in its place (the month, the days since some day), carry it "
            f"through by {carried}, leave it out by {drop}, or make it categories by {category}.",
            carried,
        )
    if "decimal" in kind.looks_like:
        return f"{looks_like}: `decimal=','` reads them.", "`decimal=','`"
    if kind.looks_like:
        return (
            f"{looks_like}: write them as plain numbers in the file, leave the column out by {drop}, or make "
            f"it categories by {category}.",
            drop,
        )
    if kind.n_numbers >= 0.5 * kind.n_present:
        absent = f"`na={[kind.odd_cell]}`"
        return (
            f"column {name!r} holds numbers, but {kind.odd_cell!r} in row {kind.odd_row}. Mend it, or say "
            f"what it is: {absent} for a missing value, {category} for categories.",
            absent,
        )
    # Every value becomes a column of 0 and 1, which some rows should share.
    if kind.n_values > max(MANY_VALUES, min(0.1 * n_rows, 20 * MANY_VALUES)):
        return (
            f"column {name!r} holds {kind.n_values} different texts in {n_rows} rows (such as "
            f"{kind.odd_cell!r}): carry it through by {carried}, leave it out by {drop}, or insist by "
            f"{category}.",
            carried,
        )
    return "", ""


def _note(name: str, kind: Kind, n_rows: int) -> str:
    """Call out a feature that looks like an id: by its name, another in every row, or equal groups of rows."""
    if n_rows < MANY_ROWS or kind.n_values < MANY_GROUPS or (kind.numbers and not kind.whole):
        return ""
    if _ID.search(name) and not kind.rows_each:
        return f"{name!r} is called an id, and is used as a feature. If it is one: `id={[name]}`."
    if not kind.rows_each:
        return ""
    if kind.rows_each == 1:
        return (
            f"{name!r} has another whole number in every row, as an id has, and is used as a feature. If it "
            f"is one: `id={[name]}`."
        )
    return (
        f"{name!r} has {kind.n_values:,} values in {kind.rows_each} rows each, as ids of rows that belong "
        f"together have, and is used as a feature. If it is one: `id={[name]}`, or `one_per={name!r}`."
    )
