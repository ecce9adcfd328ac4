"""The list of datasets: what each is, where it is from, and whether it is here."""

import os
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple, overload

from popf.datasets.places import cache_folder, embedded_folder, files_of, user_folder
from popf.datasets.registry import ENTRIES, Entry


class Record(NamedTuple):
    """What the list tells of a dataset.

    Attributes
    ----------
    name : str
        What `load` takes.
    title : str
        What it is.
    n_samples, n_features, n_classes : int
    origin : str
        Where it is from.
    licence : str
    here : str
        "folder", "embedded", "cache", "generated", "scikit-learn", or "needs download".
    in_paper : bool
        Whether the paper's tables have a set of this name.
    stand_in : bool
        Whether it is generated in place of the paper's, which nobody can have.
    note : str
        What to know before using it.
    """

    name: str
    title: str
    n_samples: int
    n_features: int
    n_classes: int
    origin: str
    licence: str
    here: str
    in_paper: bool
    stand_in: bool
    note: str


class Catalogue(Sequence[Record]):
    """Records of datasets: a sequence that prints as a table."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = tuple(records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> "Catalogue": ...
    def __getitem__(self, index: int | slice) -> "Record | Catalogue":
        if isinstance(index, slice):
            return Catalogue(self._records[index])
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalogue) and self._records == other._records

    def __hash__(self) -> int:
        return hash(self._records)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        heads, rows = _HEADS, [_cells(record) for record in self]
        widths = [max(len(row[j]) for row in [heads, *rows]) for j in range(len(heads))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [heads, *rows]
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{escape(head)}</th>" for head in _HEADS)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(record)) + "</tr>"
            for record in self
        )
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


_HEADS = ("name", "samples × features", "classes", "here", "paper", "licence", "what")


def _cells(record: Record) -> tuple[str, ...]:
    paper = ("stand-in" if record.stand_in else "yes") if record.in_paper else "no"
    size = f"{record.n_samples:,} × {record.n_features:,}"
    return (
        record.name, size, str(record.n_classes), record.here, paper, record.licence, record.title,
    )  # fmt: skip


def list_datasets(*, data_home: str | os.PathLike[str] | None = None) -> Catalogue:
    """List the datasets: what each is, where it is from, its licence, and whether it is here.

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder that `load` looks in; None for the environment variable ``POPF_DATA``, or none.

    Returns
    -------
    Catalogue
        A sequence of `Record`, the paper's datasets first; prints as a table.

    Examples
    --------
    >>> from popf import datasets
    >>> records = datasets.list()
    >>> records[0].name, records[0].n_samples
    ('australian', 690)
    >>> [record.name for record in records if record.stand_in]
    ['comercial', 'industrial', 'synthetic0', 'synthetic2', 'synthetic3']
    """
    folders = {"embedded": embedded_folder(), "cache": cache_folder()}
    named = user_folder(data_home)
    if named is not None:
        folders = {"folder": named} | folders
    return Catalogue([_record(entry, folders) for entry in ENTRIES.values()])


def _record(entry: Entry, folders: dict[str, Any]) -> Record:
    return Record(
        entry.name,
        entry.title,
        entry.n_samples,
        entry.n_features,
        len(entry.class_names),
        entry.origin,
        entry.licence,
        _here(entry, folders),
        entry.in_paper,
        entry.stand_in,
        entry.note,
    )


def _here(entry: Entry, folders: dict[str, Any]) -> str:
    if entry.kind == "stand-in":
        return "generated"
    if entry.kind == "scikit-learn":
        return "scikit-learn"
    for place, folder in folders.items():
        if next(files_of(folder, entry, keep_id=False), None) is not None:
            return place
    return "needs download"
