"""Builds the prompt of a code model (R-259): P + imports + prefix + S + suffix + M, or a plain prefix to continue."""

from __future__ import annotations

import msgspec

from codecompanion.completion.families import Family, stops_of, without_tokens


class FimPrompt(msgspec.Struct, frozen=True):
    """A prompt and its parts: `imports`, `prefix` and `suffix` as they appear in it, with special tokens broken."""

    family: str
    prompt: str
    stop: tuple[str, ...]
    imports: str
    prefix: str
    suffix: str


def build_prompt(family: Family, imports: str, prefix: str, suffix: str) -> FimPrompt:
    """Return the prompt that the document specifies. `imports` must end with a line feed, or be ""."""
    imports, prefix, suffix = (without_tokens(text, family) for text in (imports, prefix, suffix))
    prompt = imports + prefix
    if family.fills_in:
        prompt = family.prefix + prompt + family.suffix + suffix + family.middle
    return FimPrompt(family.name, prompt, stops_of(family), imports, prefix, suffix)
