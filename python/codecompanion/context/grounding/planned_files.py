"""Finds the files that a summary plans to write, which may be missing from the history (lesson 11).

Only future work counts: "create src/a.py", "src/a.py does not exist yet", a list or a tree below "Files to add:" or
"Proposed structure". A statement that a file *was* created is a claim and is checked like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from codecompanion.context.message_facts.name_patterns import PATH
from codecompanion.formats.regex import regex

# Matches folders and files without a known extension: `src/context/`, `/etc/hosts`, `./run`; never `and/or`.
PLACE = regex(
    r"(?<![\w/.<~@+-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+(?![\w<.])"
    r"|(?<![\w/.<~@+-])(?:~/|\.{1,2}/|/(?=[\w.@+-]+/))[\w.@+-]*\w(?:/[\w.@+-]*\w)*"
)
# Maximum distance from the verb to a file: a few names in a row, never into the next sentence.
_FAR, _NEAR = 160, 40
_VERB = regex(
    r"\b(?:creat(?:e|ing)|writ(?:e|ing)|add(?:ing)?|generat(?:e|ing)|introduc(?:e|ing)|scaffold(?:ing)?|draft(?:ing)?"
    r"|extract(?:ing)? (?:\S+ ){1,8}?(?:in)?to|split(?:ting)? (?:\S+ ){1,8}?into|mov(?:e|ing) (?:\S+ ){1,8}?(?:in)?to"
    r"|renam(?:e|ing) (?:\S+ ){1,8}?to|sav(?:e|ing) (?:\S+ ){1,8}?(?:to|in|as)|new (?:files?|modules?|tests?|scripts?)"
    r"|(?:to be|will be|must be|should be|still to be) (?:created|written|added|generated))\b",
    re.IGNORECASE,
)
_BEHIND = regex(
    r"[`*\"')]*+\s*+(?:\((?:new|to be (?:created|written|added))\)"
    r"|(?:\S{1,200} ){0,2}?(?:is|are|has|have|will|must|should|needs?) (?:still |yet )?(?:to )?be"
    r" (?:created|written|added|generated)|(?:does|do) not exist yet|(?:is|are) (?:still )?missing)",
    re.IGNORECASE,
)
_PROPOSAL = regex(
    r"\b(?:proposed|planned|target|new|suggested)\b(?: \S+){0,3}?"
    r" (?:structure|layout|files?|modules?|architecture|tree)\b",
    re.IGNORECASE,
)
_DONE = regex(
    r"\b(?:was|were|been|got|already|just|I|we|has|have)\s+(?:\w+\s+)?(?:created|written|added|generated|introduced|wrote)\b"
    r"|^\W*(?:created|added|wrote|generated|introduced)\b",
    re.IGNORECASE,
)
_END = regex(r"[.!?;](?=\s|$)")
_ITEM = regex(r"\s*(?:[-*+•├└│|]|\d+[.)]|`{3,}|~{3,})")
_HEADING = regex(r"\s{0,3}#{1,6} |.*:\W*$")


def planned_files(lines: Sequence[str]) -> list[frozenset[str]]:
    """Return for each line the files that the text plans to write; none for a line that reports finished work."""
    planned = frozenset(_planned(lines))
    return [frozenset() if _DONE.search(line) else planned for line in lines] if planned else [planned] * len(lines)


def _planned(lines: Sequence[str]) -> Iterator[str]:
    """Yield each file named in a sentence that announces a change, or in the list or tree that follows one."""
    in_list = in_tree = False
    for line in lines:
        if in_list and not in_tree and line.strip() and not _ITEM.match(line):
            in_list = False
        in_tree = in_tree != (in_list and line.lstrip().startswith(("```", "~~~")))
        if _DONE.search(line):
            continue
        for match in (*PATH.finditer(line), *PLACE.finditer(line)) if "." in line or "/" in line else ():
            if in_list or _is_planned(line, match):
                yield match.group()
        if not in_tree and _HEADING.match(line):
            in_list = in_list or bool(_PROPOSAL.search(line) or _VERB.search(line))


def _is_planned(line: str, place: re.Match[str]) -> bool:
    """Return whether the sentence around a file plans to write it."""
    before = line[max(0, place.start() - _FAR) : place.start()]
    ends = [end.end() for end in _END.finditer(before)]
    if _VERB.search(before, ends[-1] if ends else 0):
        return True
    return _BEHIND.match(line[place.end() : place.end() + 2 * _NEAR]) is not None


def without_planned(text: str) -> str:
    """Return a summary without the files that it plans to write; quotes of the user stay unchanged."""
    lines = text.split("\n")
    kept: list[str] = []
    for line, planned in zip(lines, planned_files(lines), strict=True):
        for name in sorted(planned, key=lambda name: (-len(name), name)) if not line.startswith(">") else ():
            line = line.replace(name, " ")
        kept.append(line)
    return "\n".join(kept)
