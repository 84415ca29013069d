"""Parses `--embed SPEC`, the command-line syntax for the source of vectors (R-239).

`url=http://localhost:11434/v1,model=nomic-embed-text[,key=ENV]` or `onnx=FOLDER`; also `dimensions=N`,
`query_prefix=TEXT` and `document_prefix=TEXT`. A value may contain commas: the next field begins at `,name=`.
"""

from __future__ import annotations

from codecompanion.adapters.keys.known_secrets import looks_like_a_key
from codecompanion.adapters.keys.redact import redact
from codecompanion.errors import InputError
from codecompanion.formats import typed
from codecompanion.formats.regex import regex
from codecompanion.model.embedding import EmbeddingSettings

EXPECTED = "url=…,model=…[,key=ENV] or onnx=FOLDER"
_NAMES = EmbeddingSettings.__struct_fields__
_NEXT = regex(rf",(?=(?:{'|'.join(_NAMES)})=)")
_ADDRESS = regex(r"https?://[^/\s]+\S*")
_VARIABLE = regex(r"[A-Za-z_]\w{0,99}")


def parse_spec(spec: str) -> EmbeddingSettings:
    """Parse the text into settings.

    Raises:
        InputError: the text is invalid; the message gives the expected form and never shows a key.
    """
    values: dict[str, str | int] = {}
    for part in _NEXT.split(spec):
        name, equals, value = part.partition("=")
        if not equals or name not in _NAMES or name in values:
            raise InputError(f"--embed {_shown(spec)}: expected {EXPECTED}")
        values[name] = value
    if "dimensions" in values:
        text = str(values["dimensions"])
        if not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= 65_536):
            raise InputError(f"--embed {_shown(spec)}: dimensions={text[:20]}: expected a number from 1 to 65536")
        values["dimensions"] = int(text)
    settings = typed.convert(values, EmbeddingSettings)
    if problem := problem_with(settings):
        raise InputError(f"--embed {_shown(spec)}: {problem[0]}: {problem[1]}")
    return settings


def problem_with(settings: EmbeddingSettings) -> tuple[str, str] | None:
    """Return the invalid field and a description of the problem, or None if the settings can be used."""
    if settings.url and settings.onnx:
        return "onnx", "set either `url` or `onnx`, not both"
    if not settings.url and not settings.onnx:
        return "url", f"expected {EXPECTED}"
    if settings.url:
        if not _ADDRESS.fullmatch(settings.url):
            return "url", "expected http://… or https://…"
        if not settings.model.strip():
            return "model", "expected the name of an embedding model, such as nomic-embed-text"
    elif settings.model or settings.key or settings.dimensions:
        return "onnx", "cannot be combined with `model`, `key` or `dimensions`"
    if not _names_a_place(settings.key):
        return "key", "expected an environment variable, cmd:… or file:…, not the key itself"
    return None


def _names_a_place(key: str) -> bool:
    """Return whether the text names the source of the key; text that could be the key itself must never be shown."""
    if not key or key.startswith(("cmd:", "file:")):
        return True
    is_shouted = key == key.upper()
    return _VARIABLE.fullmatch(key) is not None and (is_shouted or not looks_like_a_key(key)) and redact(key) == key


def _shown(spec: str) -> str:
    """Return the text without the key and a URL's secrets, safe for a message."""
    parts = [part for part in _NEXT.split(spec) if not part.startswith("key=")]
    text = redact(",".join(parts))
    return text if len(text) <= 120 and "@" not in text and text.isprintable() else text.partition("=")[0] + "=…"
