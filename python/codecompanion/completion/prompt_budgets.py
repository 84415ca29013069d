"""Size budgets for the parts of a prompt (R-256), read once from `prompt_budgets.toml`."""

from __future__ import annotations

from functools import cache

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table


class Near(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits and weights for the names near the cursor."""

    lines_before: int
    lines_after: int
    farthest: float
    after_share: float
    imported: float
    max_names: int
    unknown_in: int
    siblings: int
    max_file_share: float
    min_files: int
    max_files: int


class Chunks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits for splitting files into chunks and choosing them."""

    min_lines: int
    max_lines: int
    files: int
    max_file_bytes: int
    max_chunks: int
    max_known: float
    max_share: float
    few: int
    repeated: float
    novelty: float
    recent: float


class Signatures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits for the signatures shown."""

    max_definitions: int
    max_members: int


class Budgets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All budgets, in characters unless a name says otherwise."""

    total: int
    chars_per_token: int
    min_knowledge: int
    min_share: float
    max_knowledge: int
    signature_chars: int
    suffix_share: float
    near: Near
    chunks: Chunks
    signatures: Signatures


class Split(msgspec.Struct, frozen=True):
    """The division of one prompt: the characters for project knowledge, and the maximum before and after the cursor."""

    knowledge: int
    prefix: int
    suffix: int


@cache
def budgets() -> Budgets:
    """Return the budgets."""
    return typed.convert(package_table("completion/prompt_budgets.toml"), Budgets)


def total_chars(context_window: int, max_tokens: int) -> int:
    """Return the maximum size of a whole prompt in characters; `context_window` is in tokens, 0 if unknown."""
    table = budgets()
    if not context_window:
        return table.total
    return max(0, min(table.total, (context_window - max_tokens) * table.chars_per_token))


def knowledge_at_least(total: int, least: int | None = None) -> int:
    """Return the characters reserved for the project even if the file would fill the prompt; `least` as in `split`."""
    table = budgets()
    return min(table.min_knowledge if least is None else least, int(total * table.min_share))


def split(total: int, before: int, after: int, least: int | None = None) -> Split:
    """Return the division of a prompt of `total` characters.

    `before` and `after`: the number of characters before and after the cursor, already limited to the window. `least`:
    the minimum for project knowledge, or None for the default.
    """
    table = budgets()
    knowledge = min(max(knowledge_at_least(total, least), total - before - after), table.max_knowledge)
    room = total - knowledge
    suffix = min(after, max(room - before, int(room * table.suffix_share)))
    return Split(knowledge, min(before, room - suffix), suffix)
