"""Reports, in one sentence, the files of a project that are not searched, so that no file is left out silently."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from codecompanion.workspace.project_files import LeftOut

_WHYS = {
    "too large": "too large",
    "generated": "generated",
    "name": "with names that are not UTF-8",
    "unreadable": "unreadable",
    "secret": "withheld as secret",
    "vendored": "vendored",
    "binary": "binary",
    "hidden": "hidden",
}
"""Reasons and the words shown for them, the most surprising first."""
_WITHOUT_NAMES = ("binary", "hidden")


def left_out_files(by_name: Mapping[str, LeftOut], by_content: Iterable[tuple[str, str]]) -> dict[str, LeftOut]:
    """Return the files left out, by reason; files left out after reading (`by_content`: path and reason) come first."""
    found: dict[str, LeftOut] = {}
    for path, why in by_content:
        reason, _, secret = why.partition(": ")
        found.setdefault(reason, LeftOut()).add(f"{path}: {secret}" if secret else path)
    for why, one in by_name.items():
        known = found.setdefault(why, LeftOut())
        count = known.count + one.count
        for name in one.names:
            known.add(name)
        known.count = count
    return found


def left_out_sentence(found: Mapping[str, LeftOut]) -> str:
    """Return a sentence such as `Not searched: 1 too large (data.py).`, or "" if all files are searched."""
    told = []
    for why in (*_WHYS, *sorted(found.keys() - _WHYS.keys())):
        one = found.get(why)
        if one is not None and one.count:
            told.append(f"{one.count:,} {_WHYS.get(why, why)}{'' if why in _WITHOUT_NAMES else _names(one)}")
    return f"Not searched: {', '.join(told)}." if told else ""


def _names(one: LeftOut) -> str:
    """Return the names in parentheses, with invalid bytes escaped."""
    names = [os.fsencode(name).decode("utf-8", "backslashreplace") for name in one.names]
    has_more = one.count > len(names) and not all(name.endswith("/") for name in one.names)
    return f" ({', '.join(names)}{', …' if has_more else ''})"
