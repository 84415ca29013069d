"""Finds the files that contain the terms, those with the most terms first (R-221)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from codecompanion.session.gather.project_code import ProjectCode
from codecompanion.workspace.text_search import files_with

TIME_LIMIT_S = 4.0
MAX_READ = 250
"""Maximum number of found files that are read to count their terms; files with a term in their path are read first."""


def files_with_terms(code: ProjectCode, terms: Sequence[str], check: Callable[[], None]) -> list[str]:
    """Return the project's own files that contain a term, ignoring case, best first. Blocks.

    A file ranks higher if it contains more different terms, especially rare ones, and if its path contains a term.
    """
    wanted = tuple(dict.fromkeys(term.lower() for term in terms if term.strip() and term.isprintable()))
    if not wanted:
        return []
    found = files_with(code.root, wanted, code.choice, check=check, time_limit_s=TIME_LIMIT_S).paths
    in_path = {path: sum(term in path.lower() for term in wanted) for path in {*found, *code.unsaved}}
    first = sorted(in_path, key=lambda path: (-in_path[path], path.count("/"), path))[:MAX_READ]
    has = dict[str, list[str]]()
    for path in first:
        check()
        lower = (code.read(path) or "").lower()
        if terms_of_it := [term for term in wanted if term in lower]:
            has[path] = terms_of_it
    known_in = Counter(term for terms_of_it in has.values() for term in terms_of_it)
    worth = {term: math.log(1 + len(has) / count) for term, count in known_in.items()}
    hits = {path: sum(worth[term] for term in terms_of_it) for path, terms_of_it in has.items()}
    return sorted(hits, key=lambda path: (-hits[path] - in_path[path] / 2, path.count("/"), path))
