"""BraidDB: an embedded, ordered key-value database for persistent memory.

    import braiddb
    with braiddb.open("db", create=True) as db:
        db[b"k"] = b"v"
        with db.batch() as batch:
            batch.put(b"a", b"1")
            batch.delete(b"k")
        for key, value in db.items(prefix=b"user:", reverse=True):
            ...

Keys and values are bytes, or any object with the buffer protocol. Every object may be used by several threads at once, but for
iterators, batches and transactions, which belong to one thread at a time.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Optional, Union

from . import _braiddb
from ._braiddb import (
    AbortedError,
    Batch,
    BusyError,
    ClosedError,
    ColumnFamily,
    CorruptionError,
    Database,
    Error,
    ExpiredError,
    IncompleteError,
    InvalidArgumentError,
    IOError,
    MemoryLimitError,
    NoSpaceError,
    NotFoundError,
    NotSupportedError,
    PinnedValue,
    Range,
    ReadOnlyError,
    Snapshot,
    Table,
    TimedOutError,
    Transaction,
)

__version__ = "0.1.0"
__all__ = [
    "AbortedError", "Batch", "BusyError", "ClosedError", "ColumnFamily", "CorruptionError", "Database", "Error", "ExpiredError",
    "IncompleteError", "InvalidArgumentError", "IOError", "MemoryLimitError", "NoSpaceError", "NotFoundError", "NotSupportedError",
    "Options", "PinnedValue", "Range", "ReadOnlyError", "Snapshot", "Table", "TimedOutError", "Transaction", "check", "destroy",
    "list_backups", "list_families", "open", "restore",
]

Path = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]
Comparator = Union[str, tuple[str, Callable[[bytes, bytes], int]]]
MergeOperator = Union[str, tuple[str, Callable[[bytes, Optional[bytes], list[bytes]], Optional[bytes]]]]


def _text_of(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if not isinstance(value, (list, tuple)):
        return str(value)
    escapes = str.maketrans({"\\": "\\\\", ":": "\\:", "#": "\\#", "\n": "\\n", "\r": "\\r"})
    return ":".join(_text_of(element).translate(escapes) for element in value)


# Fields of options.h that are arguments of open().
_ARGUMENTS = {"create_if_missing": "create", "error_if_exists": "error_if_exists"}


class Options:
    """Options of the library by the names of options.h, e.g. Options(memtable_size=1 << 20, l1="nv_tree").

    Options with several elements, like region_paths, take a list or a tuple. A wrong name or value raises InvalidArgumentError at
    open(). Options can be pickled.
    """

    def __init__(self, **fields: object) -> None:
        self._fields = dict(fields)

    def texts(self) -> dict[str, str]:
        """The options as the text of an options file has them."""
        for name in self._fields:
            if name in _ARGUMENTS:
                raise InvalidArgumentError(f"Options has no {name}; give `{_ARGUMENTS[name]}` to open()")
        return {name: _text_of(value) for name, value in self._fields.items()}

    def __repr__(self) -> str:
        return "Options(" + ", ".join(f"{name}={value!r}" for name, value in self._fields.items()) + ")"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.texts().items())))


def open(
    path: Path,
    *,
    create: bool = False,
    error_if_exists: bool = False,
    read_only: bool = False,
    secondary: Optional[Path] = None,
    transactions: Union[bool, str] = False,
    ttl: Optional[int] = None,
    options: Optional[Options] = None,
    region_paths: Sequence[Path] = (),
    comparator: Optional[Comparator] = None,
    merge_operator: Optional[MergeOperator] = None,
    family_comparators: Mapping[str, Comparator] = {},
    family_merge_operators: Mapping[str, MergeOperator] = {},
) -> Database:
    """Opens a database with all its column families.

    create            create the database if it does not exist
    error_if_exists   fail if it exists
    read_only         read a database, also one that another process has open for writing; changes no byte
    secondary         directory of a secondary that follows the database beside its writer; see Database.catch_up()
    transactions      True or "pessimistic": transactions with locks; "optimistic": transactions that are checked at commit
    ttl               seconds after which keys expire; 0: never. Such a database must always be opened with `ttl`
    region_paths      a directory or device of persistent memory for each region; default: inside of `path`
    comparator        "bytewise" (default), "reverse-bytewise", or (name, function(a, b) -> negative, 0 or positive)
    merge_operator    "uint64add", or (name, function(key, existing or None, operands) -> bytes, or None for an error)
    family_...        the same of other column families, by name; a family that is not named is ordered bytewise and has none

    A function that compares is called with each key before the key is used, and its exceptions are raised. If it raises later, in
    the middle of the database, the process ends, since a wrong order would damage the database.
    """
    kind = "pessimistic" if transactions is True else transactions or ""
    if kind not in ("", "pessimistic", "optimistic"):
        raise InvalidArgumentError(f'transactions is {transactions!r}; give True, "pessimistic" or "optimistic"')
    if sum((read_only, secondary is not None, bool(kind), ttl is not None)) > 1:
        raise InvalidArgumentError("read_only, secondary, transactions and ttl exclude each other")
    return _braiddb.open(
        path, create, error_if_exists, read_only, secondary, kind, ttl, {} if options is None else options.texts(),
        list(region_paths), comparator, merge_operator, dict(family_comparators), dict(family_merge_operators))


def destroy(path: Path, region_paths: Sequence[Path] = ()) -> None:
    """Removes a database with its regions. A database that does not exist is no error."""
    _braiddb.destroy(path, list(region_paths))


def list_families(path: Path) -> list[str]:
    """The names of the column families of a database."""
    return _braiddb.list_families(path)


def check(path: Path) -> list[str]:
    """Verifies everything in a closed database and returns what is wrong. Changes no byte."""
    return _braiddb.check(path)


def restore(directory: Path, path: Path, id: Optional[int] = None) -> None:
    """Makes the database `path` of the backup `id`, or the newest one, in `directory`."""
    _braiddb.restore(directory, path, id)


def list_backups(directory: Path) -> list[dict[str, Any]]:
    """The backups in a directory, oldest first: id, timestamp, size and keys of each."""
    return _braiddb.list_backups(directory)


_MISSING: Any = object()


def _pop(self: Any, key: Any, default: Any = _MISSING) -> Any:
    """Deletes `key` and returns its value. If it does not exist: returns `default`, or raises KeyError."""
    try:
        value = self[key]
    except KeyError:
        if default is _MISSING:
            raise
        return default
    del self[key]
    return value


Mapping.register(Table)
for _writable in (Database, ColumnFamily):
    MutableMapping.register(_writable)
    setattr(_writable, "pop", _pop)
    for _name in ("popitem", "setdefault", "update"):
        setattr(_writable, _name, getattr(MutableMapping, _name))

atexit.register(_braiddb._close_all)
os.register_at_fork(after_in_child=_braiddb._mark_forked)
