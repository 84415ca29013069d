"""Finds the parts of a snippet that the model still sees, so that they are named instead of sent again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from codecompanion.formats.plural import counted
from codecompanion.model.gathered import WHOLE_FILES, Snippet
from codecompanion.retrieval.line_runs import joined_runs, numbered_lines, part_of
from codecompanion.retrieval.rendering import shown
from codecompanion.retrieval.shown_lines import Above

STILL_ABOVE = "Already above, unchanged: "
STOOD_ABOVE = "Previously provided; some has since been removed from context (read it again if needed): "
"""Introduces text that is no longer completely above."""
MAX_CHARS = 600
"""Maximum number of characters of the sentence that names code above; it must not use up the room it saves."""
MIN_SAVED_CHARS = 80
"""Minimum number of characters that omitting seen lines must save, because each remaining part needs a heading and a
fence.
"""
CHANGE_CONTEXT = 3
"""Number of lines above and below a changed line of a file that are sent again."""


def split_seen(one: Snippet, above: Above) -> tuple[list[Snippet], list[Snippet]]:
    """Return the parts of a snippet to send, and the parts that are already above, unchanged.

    In a whole file, each run of lines that is already above is omitted, and changed lines are sent with some lines of
    context. Any other snippet is sent whole if a line has changed or moved, or if omitting lines would save hardly
    anything.
    """
    known = above.lines.get(one.path)
    numbered = numbered_lines(one) if known else []
    if not known or not numbered:
        return [one], []
    is_file = one.is_selected and one.source in WHOLE_FILES
    changed = [number for number, line in numbered if known.get(number, line) != line]
    if changed and not is_file:
        return [one], []
    around = {number + step for number in changed for step in range(-CHANGE_CONTEXT, CHANGE_CONTEXT + 1)}
    parts: dict[bool, list[Snippet]] = {True: [], False: []}
    for is_known, taken in _runs(numbered, {number for number, _ in numbered if number in known} - around, is_file):
        part = one if len(taken) == len(numbered) else part_of(one, taken)
        if part is not None:
            parts[is_known].append(part)
    new, seen = parts[False], parts[True]
    saved = sum(len(part.text) for part in seen)
    if new and not is_file and (saved < MIN_SAVED_CHARS * len(new) or (one.is_selected and len(new) > 1)):
        return [one], []
    return new, seen


def _runs(
    numbered: Sequence[tuple[int, str]], known: Collection[int], drops_short: bool
) -> Iterator[tuple[bool, list[tuple[int, str]]]]:
    """Yield runs of known or unknown lines; with `drops_short`, a short known run counts as unknown."""
    runs = [(is_known, list(run)) for is_known, run in groupby(numbered, lambda pair: pair[0] in known)]
    if drops_short:
        long = [(known and sum(len(line) + 1 for _, line in run) >= MIN_SAVED_CHARS, run) for known, run in runs]
        for is_known, group in groupby(long, lambda pair: pair[0]):
            yield is_known, [pair for _, run in group for pair in run]
        return
    yield from runs


def name_seen(snippets: Sequence[Snippet]) -> str:
    """Return the sentence that names the code above, with one entry per file, best first; "" if there is none."""
    runs = dict[str, list[tuple[int, int]]]()
    for one in snippets:
        runs.setdefault(one.path or _NAMES.get(one.source, one.source), []).append((one.start, one.end))
    named, used, left = list[str](), len(STILL_ABOVE), 0
    for path, found in runs.items():
        spans = ", ".join(f"{start}-{end}" for start, end in joined_runs(found) if start)
        place = f"{shown(path)}:{spans}" if spans else shown(path)
        if used + len(place) > MAX_CHARS and named:
            left += 1
            continue
        named.append(place)
        used += len(place) + 2
    if not named:
        return ""
    if left:
        named.append(f"and parts of {counted(left, 'more file')}")
    return f"{STILL_ABOVE}{'; '.join(named)}."


_NAMES = {"memory": "memories", "team": "the team's text", "architecture": "the architecture"}
