"""Extracts the readable text of a fetched page: the main part as Markdown, other text unchanged. Pure.

turbohtml finds the main part and converts it: of the libraries tried (trafilatura, readability-lxml, resiliparse,
html-to-markdown) it is the only one that keeps code blocks and tables, has no dependencies and takes 6 MB.
"""

from __future__ import annotations

import codecs
import re

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats import text_files
from codecompanion.formats.regex import regex
from codecompanion.web.fetching import Fetched

_HTML = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = ("application/json", "application/xml", "application/javascript", "application/yaml", "application/toml")
_MIN_SHARE = 0.2
"""Minimum share of the page's text that the main part must contain; below it, the whole page is used."""
_BLANK_LINES = regex(r"\n{3,}")
_DATA_IMAGES = regex(r"!\[([^\]]{0,500})\]\(data:[^()\s]{0,10000000}\)")  # stop at `(`, otherwise n starts cost n²


class Page(msgspec.Struct, frozen=True):
    """A page. `title` is "" if there is none; `pdf` is the content of a PDF document, or None for text."""

    text: str = ""
    title: str = ""
    pdf: bytes | None = None


def page_of(fetched: Fetched) -> Page:
    """Return the fetched page.

    Raises:
        InputError: the page is neither text nor a PDF; the message names its type.
    """
    kind, body = fetched.content_type, fetched.body
    if kind == "application/pdf" or body.startswith(b"%PDF-"):
        return Page(pdf=body)
    if kind in _HTML or (not kind and re.match(rb"\s*<(!doctype|html|head|body)\b", body[:1000], re.I)):
        return _html(body, fetched.charset)
    is_text = kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+json", "+xml"))
    if text_files.is_binary(body) or not (is_text or not kind):
        raise InputError(f"{fetched.url} was not attached: it is {kind or 'not text'}; expected HTML, text or PDF.")
    return Page(text_files.printable(_decoded(body, fetched.charset)))


def _html(body: bytes, charset: str) -> Page:
    from turbohtml import parse

    document = parse(body, encoding=charset if _is_known(charset) else None, detect_encoding=True)
    main = document.main_content()
    whole = str(document.to_markdown())
    text = str(main.to_markdown()) if main is not None else whole
    if len(text) < _MIN_SHARE * len(whole) and len(text) < 1_000:
        text = whole
    text = _DATA_IMAGES.sub(r"\1", text_files.printable(text))
    title = document.find("title")
    shown = " ".join(str(title.text).split()) if title is not None else ""
    return Page(_BLANK_LINES.sub("\n\n", text).strip() + "\n", text_files.printable(shown)[:200])


def _decoded(body: bytes, charset: str) -> str:
    if _is_known(charset):
        return body.decode(charset, "replace")
    return text_files.decode(body).text


def _is_known(charset: str) -> bool:
    try:
        return bool(charset) and bool("".encode(charset) is not None and codecs.lookup(charset))
    except (LookupError, ValueError, TypeError):
        return False
