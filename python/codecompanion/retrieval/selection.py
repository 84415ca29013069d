"""Fills the budget: the user's files first, then the highest-scoring snippets that still fit (R-247, R-248, R-251).

A snippet that does not fit is skipped and smaller ones are tried. If the user's files do not all fit, they share the
budget evenly; a file that exceeds its share is truncated at a line end.
"""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.formats.plural import counted
from codecompanion.model.gathered import Dropped, Selection, Snippet, chars_to_tokens
from codecompanion.retrieval.smart_snippets import split_lines

NO_ROOM = "the budget is used up"
NO_ROOM_FOR_A_LINE = "not one line of it fits into the budget"


def select_snippets(candidates: Sequence[Snippet], budget_tokens: int, *, cut_named: bool = True) -> Selection:
    """Return the snippets that fit into the budget.

    Equal scores keep their order. `dropped` and `snippets` together are the candidates without duplicates. `cut_named`:
    truncate the user's files if they do not fit, instead of dropping them.
    """
    ordered = sorted(without_duplicates(candidates), key=lambda one: (not one.is_selected, -one.score))
    chosen = [snippet for snippet in ordered if snippet.is_selected and cut_named]
    shorter = cut_to_shares(chosen, budget_tokens)
    kept = [short for short in shorter if short is not None]
    dropped = [Dropped(one, NO_ROOM_FOR_A_LINE) for one, short in zip(chosen, shorter, strict=True) if short is None]
    free = budget_tokens - sum(snippet.tokens for snippet in kept)
    for snippet in ordered[len(chosen) :]:
        if snippet.tokens <= free:
            kept.append(snippet)
            free -= snippet.tokens
        else:
            dropped.append(Dropped(snippet, NO_ROOM))
    return Selection(snippets=tuple(kept), dropped=tuple(dropped), budget_tokens=budget_tokens)


def common_within(snippets: Sequence[Snippet], max_tokens: int) -> list[Snippet]:
    """Return the snippets with common project files truncated to this many tokens in total (R-236)."""
    common = [one for one in snippets if one.source == "common"]
    shorter = [one for one in cut_to_shares(common, max_tokens) if one is not None]
    return [*(one for one in snippets if one.source != "common"), *shorter]


def without_duplicates(snippets: Sequence[Snippet]) -> list[Snippet]:
    """Return one snippet for each path and first line: the user's choice, otherwise the one with the highest score."""
    best = dict[tuple[str, int], Snippet]()
    for snippet in snippets:
        key = (snippet.path, snippet.start)
        if key not in best or (snippet.is_selected, snippet.score) > (best[key].is_selected, best[key].score):
            best[key] = snippet
    return list(best.values())


def share_evenly(sizes: Sequence[int], budget_tokens: int) -> list[int]:
    """Return each user file's share of the budget in tokens: its full size if all files fit.

    Otherwise each file gets an even share; tokens left over by small files go to the first file that needs more, then
    to the next.
    """
    if not sizes:
        return []
    shares = [min(size, budget_tokens // len(sizes)) for size in sizes]
    for place, size in enumerate(sizes):
        shares[place] += min(size - shares[place], budget_tokens - sum(shares))
    return shares


def cut_to_shares(chosen: Sequence[Snippet], budget_tokens: int) -> list[Snippet | None]:
    """Return the user's files, each truncated to its share; None = not even one line fits.

    Tokens left over because files are truncated at line ends, or have no line that is short enough, go to the first
    truncated file, then to the next.
    """
    shares = share_evenly([one.tokens for one in chosen], budget_tokens)
    shorter = [cut_to_budget(one, share) for one, share in zip(chosen, shares, strict=True)]
    used = [one.tokens if one is not None else 0 for one in shorter]
    for place, whole in enumerate(chosen):
        if used[place] == whole.tokens and shorter[place] is not None:
            continue
        longer = cut_to_budget(whole, used[place] + budget_tokens - sum(used))
        if longer is not None:
            shorter[place], used[place] = longer, longer.tokens
    return shorter


def cut_to_budget(snippet: Snippet, max_tokens: int) -> Snippet | None:
    """Return the snippet, truncated at a line end to at most `max_tokens` including a marker.

    None = not even one line fits.
    """
    if snippet.tokens <= max_tokens:
        return snippet
    lines = split_lines(snippet.text)
    kept_chars = kept = 0
    marker = _marker(snippet, len(lines), 0)
    # The marker is longest when only the first lines are kept, so it also fits at any later cut.
    for line in lines:
        if chars_to_tokens(kept_chars + len(line) + 1 + len(marker)) > max_tokens:
            break
        kept_chars += len(line) + 1
        kept += 1
    if kept == 0:
        return None
    text = snippet.text[:kept_chars] + _marker(snippet, len(lines), kept)
    return Snippet(
        path=snippet.path,
        start=snippet.start,
        end=snippet.start + kept - 1,
        text=text,
        kind=snippet.kind,
        name=snippet.name,
        score=snippet.score,
        is_selected=snippet.is_selected,
        is_cut=True,
        source=snippet.source,
        scores=snippet.scores,
    )


def _marker(snippet: Snippet, lines: int, kept: int) -> str:
    return f"… [cut: {counted(lines - kept, 'more line')}, up to line {snippet.start + lines - 1}]"
