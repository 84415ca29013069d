"""Exports a chat as a web page: one file, which loads and runs nothing.

Tools are folded, and messages removed from the context are marked.
"""

from __future__ import annotations

import base64
from datetime import datetime, tzinfo

from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.reports.export.markdown_blocks import blocks_of
from codecompanion.reports.export.shared_chat import Conversation, ExportedMessage, Note, Picture, ToolUse
from codecompanion.reports.markdown import tokens_text
from codecompanion.reports.pages.html import escaped, page
from codecompanion.reports.pages.style import BASE

MAX_FORMATTED = 20_000
"""Maximum length of a paragraph to format; a longer one is not prose."""
STATUS_SIGNS = {"ok": "✓", "error": "✗", "cancelled": "⊘", "rejected": "⊘"}
_INLINE = regex(r"(?P<code>(?<!`)(`{1,3})(?!`)(?P<in>[^`\n]+)\2(?!`))|\*\*(?P<bold>[^*\n]+)\*\*")
_HEADING = regex(r" {0,3}#{1,6} +(.+)")
_STYLE = """
body { max-width: 54rem; }
article { margin: 2rem 0; }
article > header { display: flex; flex-wrap: wrap; gap: .1rem .75rem; align-items: baseline; margin-bottom: .4rem; }
h2 { font-size: 1rem; margin: 0; }
.user h2 { color: var(--me); } .model h2 { color: var(--model); }
.user { background: var(--raised); border-radius: .5rem; padding: .9rem 1.1rem; }
header .quiet, .badge { font-size: .85rem; }
.prose { white-space: pre-wrap; overflow-wrap: anywhere; margin: .6rem 0; max-width: none; }
.prose.head { font-weight: 650; margin-top: 1.1rem; }
pre { overflow-x: auto; background: var(--raised); border: 1px solid var(--line); border-radius: .4rem; margin: .6rem 0;
  padding: .7rem .9rem; font-size: .85rem; line-height: 1.5; tab-size: 4; }
.user pre { background: var(--paper); }
details { margin: .35rem 0; }
summary { cursor: pointer; color: var(--quiet); overflow-wrap: anywhere; padding: .15rem 0; }
details[open] > summary { color: var(--ink); }
details > :not(summary) { margin-left: 1.1rem; }
details > .label { color: var(--quiet); font-size: .8rem; margin: .6rem 0 0 1.1rem; }
.badge { color: var(--quiet); border: 1px dashed var(--ghost); border-radius: 1rem; padding: 0 .55rem;
  white-space: nowrap; }
.gone { border-left: 2px dashed var(--ghost); padding-left: 1rem; }
.gone.user { border-radius: 0; }
.note { border-left: 3px solid var(--compaction); padding: .2rem 0 .2rem 1rem; margin: 1.5rem 0; color: var(--quiet); }
.note.edit { border-color: var(--edit); }
.ok { color: var(--edit); } .bad { color: var(--fault); }
ins { color: var(--edit); text-decoration: none; } del { color: var(--fault); text-decoration: none; }
img { max-width: 100%; height: auto; border-radius: .4rem; border: 1px solid var(--line); }
@media print { summary { list-style: none; } pre { white-space: pre-wrap; } article { break-inside: auto; } }
"""


def chat_as_html(chat: Conversation, *, zone: tzinfo, version: str) -> str:
    """Return the chat as a web page."""
    messages = list(chat.messages)
    shown = " to ".join(dict.fromkeys(_day(ts, zone) for ts in (chat.began, chat.ended) if ts))
    about = ", ".join(filter(None, [" → ".join(chat.models), counted(len(messages), "message"), shown]))
    empty = '<p class="quiet">This chat is empty.</p>\n' if not chat.entries else ""
    entries = "".join(
        _note(entry) if isinstance(entry, Note) else _message(entry, number, zone)
        for number, entry in enumerate(chat.entries)
    )
    body = (
        f'<main>\n<h1>{escaped(chat.title)}</h1>\n<p class="quiet">{escaped(about)}</p>\n{entries}{empty}</main>\n'
        f"<footer><p>Exported by CodeCompanion {escaped(version)}. Known keys and text that looks like a key are"
        " hidden; read it before you share it.</p></footer>\n"
    )
    return page(chat.title, BASE + _STYLE, body, made_by=f"codecompanion {version}")


def _day(ts: float, zone: tzinfo) -> str:
    return datetime.fromtimestamp(ts, zone).strftime("%Y-%m-%d")


def _message(message: ExportedMessage, number: int, zone: tzinfo) -> str:
    badge = f'<span class="badge">no longer sent: {escaped(message.state)}</span>' if message.state else ""
    gone = " gone" if message.state else ""
    if message.who == "attached":
        size = f" · {tokens_text(message.tokens)} tokens" if message.tokens else ""
        inner = _text(message.text) + _pictures(message.pictures)
        head = f"<summary>{escaped(message.title)}{size} {badge}</summary>"
        return f'<details class="attached{gone}">{head}\n{inner}</details>\n'
    name = "Me" if message.who == "user" else "CodeCompanion"
    title = f'<span class="quiet">{escaped(message.title)}</span>' if message.title else ""
    when = ""
    if message.ts:
        at = datetime.fromtimestamp(message.ts, zone)
        when = f'<time class="quiet" datetime="{at.isoformat(timespec="seconds")}">{at:%H:%M}</time>'
    thought = (
        f"<details><summary>Reasoning</summary>\n{_text(message.reasoning)}</details>\n" if message.reasoning else ""
    )
    body = thought + _text(message.text) + _pictures(message.pictures) + "".join(_tool(tool) for tool in message.tools)
    return (
        f'<article class="{message.who}{gone}" aria-labelledby="m{number}">\n<header>'
        f'<h2 id="m{number}">{name}</h2>{title}{when}{badge}</header>\n{body}</article>\n'
    )


def _tool(tool: ToolUse) -> str:
    sign = STATUS_SIGNS.get(tool.status, "·")
    look = "ok" if tool.status == "ok" else "bad"
    badge = f' <span class="badge">{escaped(tool.state)}</span>' if tool.state else ""
    status = "" if tool.status == "ok" else f" · {escaped(tool.status)}"
    parts = [_labelled("Call", _pre(tool.arguments)) if tool.arguments else ""]
    parts.append(_labelled("Change", _diff(tool.diff)) if tool.diff else "")
    parts.append(_labelled("Result", _pre(tool.result)) if tool.result else "")
    return (
        f'<details><summary><span class="{look}" aria-hidden="true">{sign}</span> {escaped(tool.title)}{status}{badge}'
        f"</summary>\n{''.join(parts)}{_pictures(tool.pictures)}</details>\n"
    )


def _labelled(label: str, markup: str) -> str:
    return f'<p class="label">{label}</p>\n{markup}'


def _note(note: Note) -> str:
    mark = "" if note.summary else " edit"
    undone = ' <span class="badge">undone</span>' if note.undone else ""
    if not note.summary:
        return f'<div class="note{mark}">{escaped(note.text)}{undone}</div>\n'
    return (
        f'<div class="note"><details><summary>{escaped(note.text)}{undone}</summary>\n{_text(note.summary)}</details>'
        "</div>\n"
    )


def _pre(text: str) -> str:
    return f'<pre tabindex="0"><code>{escaped(text)}</code></pre>\n'


def _diff(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        tag = {"+": "ins", "-": "del"}.get(line[:1])
        lines.append(f"<{tag}>{escaped(line)}</{tag}>" if tag else escaped(line))
    return f'<pre tabindex="0"><code>{chr(10).join(lines)}</code></pre>\n'


def _pictures(pictures: tuple[Picture, ...]) -> str:
    return "".join(_picture(picture) for picture in pictures)


def _picture(picture: Picture) -> str:
    if picture.content is None:
        return f'<p class="quiet">Image left out: {escaped(picture.label)}</p>\n'
    content = base64.b64encode(picture.content).decode()
    return f'<p><img alt="{escaped(picture.label)}" src="data:{picture.mime};base64,{content}"></p>\n'


def _text(text: str) -> str:
    """Return the markup of a message: fences, inline code, bold and headings are rendered, the rest is unchanged."""
    parts = []
    for block in blocks_of(text):
        if block.is_code:
            parts.append(_pre(block.text))
            continue
        parts += [_paragraph(paragraph) for paragraph in _paragraphs(block.text)]
    return "".join(parts)


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs; a heading is its own paragraph."""
    found: list[list[str]] = [[]]
    for line in text.split("\n"):
        heading = _HEADING.match(line)
        if heading or not line.strip():
            found += [[line], []] if heading else [[]]
        else:
            found[-1].append(line)
    return ["\n".join(lines) for lines in found if lines]


def _paragraph(text: str) -> str:
    if len(text) > MAX_FORMATTED:
        return f'<p class="prose">{escaped(text)}</p>\n'
    heading = _HEADING.match(text) if "\n" not in text else None
    look = "prose head" if heading else "prose"
    return f'<p class="{look}">{_inline(_title(heading[1]) if heading else text)}</p>\n'


def _title(heading: str) -> str:
    """Return a heading without its optional closing `#` signs, as in `## Why ##`."""
    return heading.rstrip(" #") or heading


def _inline(text: str) -> str:
    parts, end = list[str](), 0
    for found in _INLINE.finditer(text):
        parts.append(escaped(text[end : found.start()]))
        if found["code"]:
            parts.append(f"<code>{escaped(found['in'])}</code>")
        else:
            parts.append(f"<strong>{escaped(found['bold'])}</strong>")
        end = found.end()
    return "".join((*parts, escaped(text[end:])))
