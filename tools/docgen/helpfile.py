"""Generates `doc/codecompanion.txt` from the texts of `parts/`, with lists generated from the option schema.

The first line of a part is its title and tag (`Options *codecompanion-options*`). A line `{{name}}` is replaced by the
list of that name. Tags at the end of a line are moved to the right edge; the table of contents is generated from the
titles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from codecompanion.adapters.entries.options import adapter_options
from codecompanion.context.policy.strict import ALWAYS
from codecompanion.settings import builtin_adapters
from codecompanion.tools.files.code_files import groups
from tools.docgen.option_help import keymap_lines, option_lines, tool_lines
from tools.docgen.schema import Dump, walk
from tools.docgen.wrapping import WIDTH, wrapped

# Not below doc/: `:helptags doc` reads every text file there, and a tag must not occur twice.
PARTS = Path(__file__).parent / "parts"
_SHOWN_PATTERNS = 4
_TAGGED = re.compile(r"^(\S*.*?)\s*(\*[^*\s]+\*(?: >\w+)?)$")
_OPTION_LINK = re.compile(r"\|codecompanion\.([\w.<>]+)\|")
# Neovim highlights capitals beside a tag as a headline.
_TITLE = re.compile(r"[A-Z][\w', -]+$")
_LIST = re.compile(r"^\{\{(\w+)\}\}$")

Lister = Callable[[Dump], Iterator[str]]


def help_file(dump: Dump) -> str:
    """Return the whole help file."""
    texts = [path.read_text(encoding="utf-8").rstrip("\n").splitlines() for path in sorted(PARTS.glob("*.txt"))]
    head, *sections = texts
    lines = [*head, ""]
    lines += ["=" * WIDTH, _right("CONTENTS", "*codecompanion-contents*"), ""]
    lines += [_content_line(number, section[0]) for number, section in enumerate(sections, 1)]
    for number, section in enumerate(sections, 1):
        title, tag = _title(section[0])
        lines += ["", "=" * WIDTH, _right(f"{number}. {title.upper()}", tag)]
        lines += list(_filled(section[1:], dump))
    lines += ["", "vim:tw=78:ts=8:noet:ft=help:norl:"]
    return "\n".join(lines) + "\n"


def _filled(lines: list[str], dump: Dump) -> Iterator[str]:
    for line in lines:
        listed = _LIST.match(line)
        tagged = _TAGGED.match(line)
        if listed:
            yield from _LISTS[listed[1]](dump)
        elif tagged and not line.startswith(" "):
            yield _right(tagged[1].upper() if _TITLE.match(tagged[1]) else tagged[1], tagged[2])
        else:
            yield line


def _right(text: str, tag: str) -> str:
    """Return the text with the tag at the right edge, separated by at least two columns."""
    return text + " " * max(2 if text else 0, WIDTH - len(text) - len(tag)) + tag


def _title(line: str) -> tuple[str, str]:
    match = _TAGGED.match(line)
    if match is None:
        raise ValueError(f"a part begins with its title and tag, not with {line!r}")
    return match[1], match[2]


def _content_line(number: int, line: str) -> str:
    title, tag = _title(line)
    link = f"|{tag.strip('*')}|"
    left = f"{number:>3}. {title} "
    return left + "." * max(3, WIDTH - len(left) - len(link) - 1) + " " + link


def _options(dump: Dump) -> Iterator[str]:
    yield from option_lines(dump.schema, linked_options(dump))


def linked_options(dump: Dump) -> frozenset[str]:
    """Return the paths of the options that a part of the help file links to."""
    texts = [path.read_text(encoding="utf-8") for path in PARTS.glob("*.txt")]
    texts += [option.description for _, option in walk(dump.schema)]
    return frozenset(link for text in texts for link in _OPTION_LINK.findall(text))


def _adapters(_: Dump) -> Iterator[str]:
    for name, about in builtin_adapters().items():
        key, model = about.get("key"), about.get("model")
        first, *rest = wrapped(f"{key} · {model}" if key else about["about"].rstrip("."), 25, 23)
        yield f"{f'    `{name}`':<24} {first.lstrip()}"
        yield from rest


def _adapter_opts(_: Dump) -> Iterator[str]:
    """Yield the options grouped by the kinds of adapters that have them, with those of all adapters first."""
    by_kinds: dict[tuple[str, ...], list[str]] = {(): []}
    for name, opt in sorted(adapter_options().items()):
        text = f"`{name}` ({' or '.join(opt.types)}): {opt.description}"
        by_kinds.setdefault(tuple(opt.kinds), []).append(text)
    for kinds, texts in by_kinds.items():
        yield f"{', '.join(kinds) or 'All adapters'} ~"
        for text in texts:
            yield from wrapped(text, 4, 8)


def _slash(dump: Dump) -> Iterator[str]:
    for command in dump.slash:
        usage = f"    `/{command.name}{' ' + command.argument if command.argument else ''}`"
        first, *rest = wrapped(command.description, 31, 29)
        yield usage.ljust(30) + " " + first.lstrip()
        yield from rest


def _autocmds(dump: Dump) -> Iterator[str]:
    """Yield each event under its tag, with its description and fields; policy events have their own page."""
    policies = {autocmd.name for autocmd in dump.policy_autocmds}
    for autocmd in dump.autocmds:
        if autocmd.name in policies:
            continue
        yield f"*{autocmd.name}*"
        fields = "; ".join(_field(*field) for field in autocmd.data)
        yield from wrapped(f"{autocmd.description} {fields}.".removesuffix(" ."), 4)


def _policy_autocmds(dump: Dump) -> Iterator[str]:
    yield from (f"*{autocmd.name}*" for autocmd in dump.policy_autocmds)


def _field(name: str, meaning: str) -> str:
    kind, _, text = meaning.partition(": ")
    return f"`{name}` ({kind}): {text}" if text else f"`{name}` ({kind})"


def _highlights(dump: Dump) -> Iterator[str]:
    for name, link, meaning in dump.highlights:
        yield from wrapped(f"`{name}`{'' if link == 'NONE' else f' ({link})'}: {meaning}.", 4, 8)


def _guarded_files(_: Dump) -> Iterator[str]:
    """Yield each reason with its first patterns; the whole list is in a table elsewhere."""
    for reason, patterns in groups():
        yield from wrapped(f"{reason[0].upper()}{reason[1:]}: {' '.join(patterns[:_SHOWN_PATTERNS])} …", 4, 8)


def _always(_: Dump) -> Iterator[str]:
    for sentence in ALWAYS:
        yield from wrapped(f"- {sentence}", 0, 2)


_LISTS: dict[str, Lister] = {
    "options": _options,
    "keymaps": lambda dump: keymap_lines(dump.schema),
    "tools": lambda dump: tool_lines(dump.schema),
    "adapters": _adapters,
    "adapter_opts": _adapter_opts,
    "slash": _slash,
    "autocmds": _autocmds,
    "policy_autocmds": _policy_autocmds,
    "highlights": _highlights,
    "guarded_files": _guarded_files,
    "always": _always,
}
