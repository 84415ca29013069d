"""Formats a number with its noun: `1 chat`, `1,200 chats`."""

from __future__ import annotations


def cleared_words(cleared: int, code: int) -> str:
    """Return a count of cleared items in words: tool results, and code gathered for messages."""
    results = [counted(cleared - code, "tool result")] if cleared > code or not code else []
    return " and ".join([*results, *([f"code for {counted(code, 'message')}"] if code else [])])


def counted(number: float, noun: str, plural: str = "") -> str:
    """Return the number and the noun in the matching form; `plural` if it is not the noun with an s."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"
