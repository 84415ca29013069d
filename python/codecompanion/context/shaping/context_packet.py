"""S21 `context_packet`: puts a few workspace facts before a question, to save the model from asking (R-350…R-355).

The facts are passed as values; the sections to attach depend on these facts, the user's words and the facts sent
earlier. Facts are only names, codes and counts, never the content of a file or a hunk of a patch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from codecompanion.context.strategy_parameters import ContextPacket
from codecompanion.formats.regex import regex

Section = Literal["repo", "git", "git_dirty_summary", "diagnostics"]
SECTIONS: tuple[Section, ...] = ("repo", "git", "git_dirty_summary", "diagnostics")
"""All sections, in the order in which they are added."""
MAX_CHANGED_FILES, MAX_DIAGNOSTIC_FILES, MAX_DIAGNOSTICS, MESSAGE_CHARS, PATH_CHARS = 20, 3, 8, 160, 240
PACKET_TAG = "context_packet"
_LABELS: dict[Section, tuple[str, str]] = {
    "repo": ("Repository", "workspace"),
    "git": ("Git", "git"),
    "git_dirty_summary": ("Changed files", "git"),
    "diagnostics": ("Diagnostics", "editor"),
}
_ABOUT_GIT = regex(
    r"\b(?:git|status|diff|branch(?:es)?|commit(?:s|ted)?|merge|rebase|stash|staged|checkout|pull request|pr|"
    r"chang(?:e|es|ed)|dirty)\b",
    re.IGNORECASE,
)
_ABOUT_DIAGNOSTICS = regex(
    r"\b(?:errors?|warnings?|diagnostics?|lint(?:er|ing)?|tests?|fail(?:s|ed|ing|ure)?|type ?check\w*|compil\w*|"
    r"build|broken)\b",
    re.IGNORECASE,
)


class ChangedFile(msgspec.Struct, frozen=True):
    """A changed file: its git status code, and its path from the root of the repository."""

    code: str
    path: str


class DiagnosticFact(msgspec.Struct, frozen=True):
    """One diagnostic of the editor."""

    path: str
    line: int
    severity: str
    message: str


class Facts(msgspec.Struct, frozen=True):
    """The facts of the workspace at the start of a turn. `branch` is "" if there is none."""

    name: str = ""
    is_git: bool = False
    branch: str = ""
    changed: tuple[ChangedFile, ...] = ()
    diagnostics: tuple[DiagnosticFact, ...] = ()


class Packet(msgspec.Struct, frozen=True):
    """The packet of a turn: its text ("" if it is empty), its sections, and the omitted sections.

    `omitted`: (section, reason) with the reason `unchanged`, `not_asked_for`, `empty` or `token_budget`.
    """

    text: str = ""
    sections: dict[str, str] = {}
    omitted: tuple[tuple[str, str], ...] = ()
    tokens: int = 0


def section_text(section: Section, facts: Facts) -> str:
    """Return the lines of a section (R-351), or "" if it is empty."""
    match section:
        case "repo":
            return f"name: {one_line(facts.name) or 'workspace'}\ngit: {'detected' if facts.is_git else 'not_detected'}"
        case "git":
            if not facts.is_git:
                return ""
            branch = f"branch: {one_line(facts.branch)}\n" if facts.branch else ""
            return f"{branch}changed_files: {len(facts.changed)}"
        case "git_dirty_summary":
            return _dirty_summary(facts.changed) if facts.is_git else ""
        case "diagnostics":
            return _diagnostics(facts.diagnostics)


def _dirty_summary(changed: tuple[ChangedFile, ...]) -> str:
    if not changed:
        return ""
    listed = changed[:MAX_CHANGED_FILES]
    lines = [f"total_changed_files: {len(changed)}", f"listed_changed_files: {len(listed)}"]
    if len(changed) > len(listed):
        lines.append(f"omitted_changed_files: {len(changed) - len(listed)}")
    lines.append("files:")
    lines += [f"- {one_line(file.code) or '?'} {one_line(file.path)}" for file in listed]
    return "\n".join(lines)


def _diagnostics(found: tuple[DiagnosticFact, ...]) -> str:
    files = list(dict.fromkeys(fact.path for fact in found))[:MAX_DIAGNOSTIC_FILES]
    shown = [fact for fact in found if fact.path in files][:MAX_DIAGNOSTICS]
    if not shown:
        return ""
    lines = [f"total_diagnostics: {len(found)}", f"listed_diagnostics: {len(shown)}"]
    lines += [
        f"- {one_line(f.path)}:{f.line} {one_line(f.severity)}: {one_line(f.message)[:MESSAGE_CHARS]}" for f in shown
    ]
    return "\n".join(lines)


def one_line(text: str) -> str:
    """Return the text on one line, escaped so that it cannot close its element (R-355)."""
    return " ".join(text.split()).replace("<", "‹").replace(">", "›")[:PATH_CHARS]


def budget_tokens(params: ContextPacket, input_limit: int) -> int:
    """Return the token budget of the packet: limit / 20, at most 2000 (R-352); 0 if the limit is unknown."""
    return min(max(input_limit // params.share, 1), params.max_tokens) if input_limit > 0 else 0


def plan_packet(
    enabled: tuple[str, ...],
    facts: Facts,
    words: str,
    sent: Mapping[str, str],
    budget: int,
    count: Callable[[str], int],
) -> Packet:
    """Return the packet of a new turn (R-352, R-353).

    `words`: the user's message. `sent`: the last text of each section in this chat (empty in the first turn). A section
    that exceeds the budget is omitted; a smaller section after it may still fit.
    """
    if budget <= 0:
        return Packet()
    chosen: dict[str, str] = {}
    omitted: list[tuple[str, str]] = []
    for section in SECTIONS:
        if section not in enabled:
            continue
        text = section_text(section, facts)
        reason = _reason_against(section, text, words, sent)
        if not reason and count(_wrapped({**chosen, section: text})) > budget:
            reason = "token_budget"
        if reason:
            omitted.append((section, reason))
        else:
            chosen[section] = text
    whole = _wrapped(chosen) if chosen else ""
    return Packet(whole, chosen, tuple(omitted), count(whole) if whole else 0)


def _reason_against(section: Section, text: str, words: str, sent: Mapping[str, str]) -> str:
    if not text:
        return "empty"
    if section == "diagnostics":
        # Only if the request mentions them, even in the first turn.
        return "" if _ABOUT_DIAGNOSTICS.search(words) else "not_asked_for"
    if not sent or sent.get(section) != text:
        return ""
    return "" if section != "repo" and _ABOUT_GIT.search(words) else "unchanged"


def _wrapped(sections: Mapping[str, str]) -> str:
    parts = []
    for key, text in sections.items():
        label, source = _LABELS[key]  # type: ignore[index]
        parts.append(
            f'<section key="{key}" label="{label}" source="{source}" freshness="turn_start">\n{text}\n</section>'
        )
    return "<deterministic_context_packet>\n" + "\n".join(parts) + "\n</deterministic_context_packet>"
