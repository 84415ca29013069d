"""Returns the words of a message without its fenced code, for titles and previews on one line."""

from __future__ import annotations

from codecompanion.formats.regex import regex

_READ_CHARS = 100_000
_OPENING = regex(r"(?m)^(?:([^\n]{1,400}:\d+-\d+)\n)?(`{3,20})[^\n`]{0,80}(?:\n|\Z)")
"""Matches an opening fence, also below the file and lines that `:'<,'>CodeCompanionChat` writes above it."""


def without_code(text: str) -> str:
    """Return the text without fenced code; if there is nothing else, return the code without its fences."""
    if "```" not in text:
        return text
    text = text[:_READ_CHARS]
    words, code, at = "", "", 0
    while found := _OPENING.search(text, at):
        words += text[at : found.start()]
        begin, fence = found.end(), f"\n{found[2]}"
        end = text.find(f"{fence}\n", begin - 1)
        if end < 0:
            end = len(text) - len(fence) if text.endswith(fence) else len(text)
        code += f"{found[1] or ''}\n{text[begin:end]}\n"
        at = min(len(text), end + len(fence))
    words += text[at:]
    return words if words.strip() else code
