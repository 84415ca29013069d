"""Formats a number with its noun: `1 chat`, `1,200 chats`."""

from __future__ import annotations


def cleared_words(cleared: int, code: int) -> str:
    """Return in words how many tool results, and the gathered code of how many messages, were cleared."""
    results = [counted(cleared - code, "tool result")] if cleared > code or not code else []
    return " and ".join([*results, *([f"code for {counted(code, 'message')}"] if code else [])])


def counted(number: float, noun: str, plural: str = "") -> str:
    """Return the number and the noun in the matching form; `plural` is needed unless the noun just takes an s."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"
