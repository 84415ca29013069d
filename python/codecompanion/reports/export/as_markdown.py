"""A chat as Markdown that keeps its form whatever stands in it.

Prose of a message stays Markdown; only what could leave its place is changed. No `<` of a message is left outside of
code, so that it holds no markup; its headings are put below ours; images of a message are not loaded; code is fenced
again, by more marks than stand in it. Tools are folded with `<details>`, which all known renderers show.
"""

from __future__ import annotations

import base64
import re
from datetime import datetime, tzinfo

from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.reports.export.as_html import STATUS_SIGNS
from codecompanion.reports.export.blocks import blocks_of
from codecompanion.reports.export.conversation import Conversation, Note, Picture, Said, ToolUse
from codecompanion.reports.markdown import page_text, tokens_text

_HEADING = regex(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_UNDERLINE = regex(r"[\s>]*(=+|-+)\s*$")
_NEW_FENCE = regex(r"([\s>]*)(`{3,}|~{3,})")
_RUNS = regex(r"`+")
_CODE = regex(r"(?<!`)(`{1,3})(?!`)([^`\n]*[<&][^`\n]*)\1(?!`)")
_ENTITY = regex(r"&(?=#?\w+;)")
_LOADED = regex(r"!(?=\[)")
_SCHEME = regex(r"\](?=\s*[(:]\s*<?\s*(?:javascript|vbscript|data|file)\s*:)", re.IGNORECASE)
_NO_TEXT = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_MEANING = frozenset("<&!`~#=-]")
"""A line without any of these can neither open markup nor be a heading."""
_SPECIAL, _FIRST = frozenset("\\`*_[]<>&|!~#"), frozenset("+-=>.")
"""What means something to Markdown anywhere in a line, and at its beginning."""
MIN_FENCE = 3


def chat_as_markdown(chat: Conversation, *, zone: tzinfo, version: str) -> str:
    """Return the document."""
    said = list(chat.said)
    shown = " to ".join(dict.fromkeys(_day(ts, zone) for ts in (chat.began, chat.ended) if ts))
    about = ", ".join(filter(None, [" → ".join(chat.models), counted(len(said), "message"), shown]))
    lines = [f"# {_plain(chat.title)}", "", _plain(about), ""]
    if not chat.entries:
        lines += ["Nothing has been said yet.", ""]
    for entry in chat.entries:
        lines += [*(_note(entry) if isinstance(entry, Note) else _said(entry, zone)), ""]
    lines += ["---", ""]
    lines.append(f"Exported by CodeCompanion {_plain(version)}. Keys it knows and what looks like one are hidden.")
    return _NO_TEXT.sub("\ufffd", page_text(lines)) + "\n"


def _day(ts: float, zone: tzinfo) -> str:
    return datetime.fromtimestamp(ts, zone).strftime("%Y-%m-%d")


def _plain(text: str) -> str:
    """Return a text on one line in which nothing means anything to Markdown."""
    line = " ".join(text.split())
    signs = (
        f"&#{ord(sign)};" if sign in _SPECIAL or (not at and sign in _FIRST) else sign for at, sign in enumerate(line)
    )
    return "".join(signs)


def _said(said: Said, zone: tzinfo) -> list[str]:
    gone = [f"*not sent any more: {_plain(said.state)}*", ""] if said.state else []
    pictures = [line for picture in said.pictures for line in _picture(picture)]
    if said.who == "attached":
        size = f" · {tokens_text(said.tokens)} tokens" if said.tokens else ""
        return _folded(_plain(said.title) + size, [*gone, *_fenced(said.text), *pictures])
    name = "Me" if said.who == "user" else "CodeCompanion"
    about = [said.title, f"{datetime.fromtimestamp(said.ts, zone):%H:%M}" if said.ts else ""]
    shown = _plain(", ".join(part for part in about if part))
    lines = [f"## {name}{f' ({shown})' if shown else ''}", "", *gone]
    if said.reasoning:
        lines += [*_folded("Reasoning", _fenced(said.reasoning)), ""]
    lines += [*_prose(said.text), *pictures]
    for tool in said.tools:
        lines += [*_tool(tool), ""]
    return lines


def _tool(tool: ToolUse) -> list[str]:
    status = "" if tool.status == "ok" else f" · {_plain(tool.status)}"
    state = f" · <em>{_plain(tool.state)}</em>" if tool.state else ""
    inside = _fenced(tool.arguments) if tool.arguments else []
    inside += _fenced(tool.diff, "diff") if tool.diff else []
    inside += _fenced(tool.result) if tool.result else []
    inside += [line for picture in tool.pictures for line in _picture(picture)]
    return _folded(f"{STATUS_SIGNS.get(tool.status, '·')} {_plain(tool.title)}{status}{state}", inside)


def _note(note: Note) -> list[str]:
    undone = " (undone)" if note.undone else ""
    if not note.summary:
        return [f"> {_plain(note.text)}{undone}"]
    return _folded(f"{_plain(note.text)}{undone}", _prose(note.summary))


def _folded(summary: str, inside: list[str]) -> list[str]:
    return ["<details>", f"<summary>{summary}</summary>", "", *inside, "", "</details>"]


def _fenced(text: str, language: str = "") -> list[str]:
    longest = max((len(run) for run in _RUNS.findall(text)), default=0)
    fence = "`" * max(MIN_FENCE, longest + 1)
    shown = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    return ["", f"{fence}{language}\n{shown}\n{fence}", ""]


def _picture(picture: Picture) -> list[str]:
    if picture.content is None:
        return ["", f"Image left out: {_plain(picture.label)}", ""]
    content = base64.b64encode(picture.content).decode()
    return ["", f"![{_plain(picture.label)}](data:{picture.mime};base64,{content})", ""]


def _prose(text: str) -> list[str]:
    lines: list[str] = []
    for block in blocks_of(text):
        lines += _fenced(block.text, block.language) if block.is_code else ["", *_kept(block.text), ""]
    return lines


def _kept(text: str) -> list[str]:
    """Return the lines of prose, which can neither open markup nor pass for a heading of ours."""
    lines = []
    for line in text.split("\n"):
        if _MEANING.isdisjoint(line):
            lines.append(line)
            continue
        if _UNDERLINE.match(line):
            lines.append("* * *" if line.strip().startswith("---") else f"{_plain(line)}")
            continue
        heading = _HEADING.match(line)
        if heading:
            line = f"{heading[1]}{'#' * min(6, len(heading[2]) + 2)}{line[heading.end() :]}"
        shown = _without_markup(line)
        mark = _NEW_FENCE.match(shown)  # it was none, or this would be code; without its last backticks it may be one
        lines.append(f"{mark[1]}{_plain(mark[2])}{shown[mark.end() :]}" if mark else shown)
    return lines


def _without_markup(line: str) -> str:
    parts, end = list[str](), 0
    for found in _CODE.finditer(line):
        parts.append(_text_only(line[end : found.start()]))
        parts.append(f"<code>{_plain(found[2])}</code>")
        end = found.end()
    return "".join((*parts, _text_only(line[end:])))


def _text_only(text: str) -> str:
    text = _ENTITY.sub("&amp;", text)
    text = _SCHEME.sub(r"\\]", _LOADED.sub(r"\\!", text))
    return text.replace("<", "&lt;")
