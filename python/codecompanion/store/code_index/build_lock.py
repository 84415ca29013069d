"""Allows one builder per index across Neovims, with a lock that ends with its process, even on `kill -9`.

The lock is SQLite's own, on an empty database beside the index, so it works wherever SQLite does.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from codecompanion.store.code_index.index_tables import unusable_or_unavailable
from codecompanion.store.sqlite_connection import create_private_file, explain, make_private_folder


@contextlib.contextmanager
def building(path: Path) -> Iterator[bool]:
    """Hold the lock of the index at `path` during the `with` block; yield False if another builder holds it.

    Raises:
        StoreUnavailable: the folder cannot be written.
    """
    name = path.with_suffix(".lock")
    try:
        make_private_folder(path.parent)
        create_private_file(name)
        connection = sqlite3.connect(name, timeout=0, isolation_level=None, check_same_thread=False)
    except (sqlite3.Error, OSError) as error:
        raise explain(error, name) from error
    with contextlib.closing(connection):
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if "locked" not in str(error):
                raise unusable_or_unavailable(error, name) from error
            yield False
            return
        yield True
