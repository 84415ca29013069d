"""Provides the parts shared by all pages: escaping, and a frame that keeps the page from loading or running anything.

All text from outside passes through `escaped`. The policy in the frame is the second line of defence: a browser fetches
nothing and runs no script even if some text got into the markup.
"""

from __future__ import annotations

import html

from codecompanion.formats.regex import regex

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_NO_CHARACTERS = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Matches control characters, lone surrogates and non-characters, which HTML cannot represent."""
_DIRECTIONS = regex(r"[\u202a-\u202e\u2066-\u2069]")
"""Matches text direction controls, which would also affect the text around them."""


def escaped(text: str) -> str:
    """Return the text escaped for an element, or for an attribute in double quotes."""
    shown = _NO_CHARACTERS.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    return html.escape(_DIRECTIONS.sub(lambda found: f"[U+{ord(found[0]):04X}]", shown), quote=True)


def page(title: str, style: str, body: str, *, made_by: str) -> str:
    """Return the whole page. `title` and `made_by` are escaped here; `style` and `body` are already markup."""
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escaped(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f'<meta name="generator" content="{escaped(made_by)}">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
