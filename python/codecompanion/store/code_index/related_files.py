"""Finds files of the index that share rare names with the text at the cursor, for completion."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from codecompanion.store.code_index.name_hashes import NAMED, asked
from codecompanion.store.code_index.reader import IndexReader


class RelatedFiles(msgspec.Struct, frozen=True):
    """The most similar files, best first; the number of files that use and define each name.

    The total number of files.
    """

    paths: tuple[str, ...] = ()
    files_with: dict[str, int] = {}
    defined_in: dict[str, int] = {}
    total_files: int = 0


def find_related(
    reader: IndexReader,
    weights: Mapping[str, float],
    own_path: str,
    *,
    limit: int,
    max_share: float,
    few: int,
    many: int,
) -> RelatedFiles:
    """Return the files that share names with `weights`, which maps each name to its weight.

    A name that occurs in more than `max_share` of the files (but at least `few`), or in more than `many`, is ignored.
    Raises the same errors as `IndexReader`.
    """
    with reader.reading() as connection:
        (total,) = connection.execute("SELECT count(*) FROM files").fetchone()
        # Counting stops early for a name that occurs everywhere.
        rows = connection.execute(f"{_COUNTED} WHERE {NAMED}", (many + 1, many + 1, *asked(weights))).fetchall()
        files_with = {name: max(used, defined) for _, name, used, defined in rows}
        defined_in = {name: defined for _, name, _, defined in rows if defined}
        most = min(many, max(few, int(total * max_share)))
        worth = [
            (name_id, weights[name] * math.log(1 + total / files_with[name]))
            for name_id, name, _, _ in rows
            if 0 < files_with[name] <= most
        ]
        if not worth:
            return RelatedFiles((), files_with, defined_in, total)
        values = ",".join("(?, ?)" for _ in worth)
        parameters = [value for pair in worth for value in pair]
        found = connection.execute(_RELATED.format(values=values), (*parameters, own_path, limit)).fetchall()
    return RelatedFiles(tuple(path for path, _ in found), files_with, defined_in, total)


_COUNTED = """
SELECT n.id, n.name,
  (SELECT count(*) FROM (SELECT 1 FROM refs r WHERE r.name_id = n.id LIMIT ?)),
  (SELECT count(*) FROM (SELECT DISTINCT s.file_id FROM symbols s WHERE s.name_id = n.id LIMIT ?))
FROM names n
"""
_RELATED = """
WITH wanted (id, worth) AS (VALUES {values})
SELECT f.path, sum(shared.worth) AS score FROM (
  SELECT r.file_id, w.id, w.worth FROM wanted w JOIN refs r ON r.name_id = w.id
  UNION
  SELECT s.file_id, w.id, w.worth FROM wanted w JOIN symbols s ON s.name_id = w.id
) AS shared JOIN files f ON f.id = shared.file_id
WHERE f.path <> ? GROUP BY shared.file_id ORDER BY score DESC, f.path LIMIT ?
"""
