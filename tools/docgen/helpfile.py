"""`doc/codecompanion.txt`: the texts of `parts/`, with lists generated from the option schema.

The first line of a part is its title and tag (`Options *codecompanion-options*`). A line `{{name}}` is replaced by the
list of that name. Tags at the end of a line are moved to the right edge; the table of contents is generated from the
titles.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from codecompanion.adapters.entries.options import adapter_options
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.policy.strict import ALWAYS, deviations
from codecompanion.retrieval.gather_pipeline import PipelineName, load_pipeline
from codecompanion.settings import builtin_adapters
from codecompanion.tools.files.code_files import groups
from tools.docgen.option_help import keymap_lines, option_lines, tool_lines
from tools.docgen.schema import Dump, walk

# Not below doc/: `:helptags doc` reads every text file there, and a tag must not occur twice.
PARTS = Path(__file__).parent / "parts"
WIDTH = 78
_POLICY_EVENTS = "CodeCompanionContextCapacity", "CodeCompanionContextPruned", "CodeCompanionCheckpointFailed"
_TAGGED = re.compile(r"^(\S*.*?)\s*(\*[^*\s]+\*)$")
_OPTION_LINK = re.compile(r"\|codecompanion\.([\w.<>]+)\|")
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


def wrapped(text: str, indent: int) -> list[str]:
    """Return the text as lines of at most 78 columns."""
    margin = " " * indent
    return textwrap.wrap(
        text, WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )


def _filled(lines: list[str], dump: Dump) -> Iterator[str]:
    for line in lines:
        listed = _LIST.match(line)
        tagged = _TAGGED.match(line)
        if listed:
            yield from _LISTS[listed[1]](dump)
        elif tagged and not line.startswith(" "):
            yield _right(tagged[1], tagged[2])
        else:
            yield line


def _right(text: str, tag: str) -> str:
    """Return the text with the tag at the right edge, at least two columns away."""
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
    """Return the paths of the options that a text of the help file links to."""
    texts = [path.read_text(encoding="utf-8") for path in PARTS.glob("*.txt")]
    texts += [option.description for _, option in walk(dump.schema)]
    return frozenset(link for text in texts for link in _OPTION_LINK.findall(text))


def _adapters(_: Dump) -> Iterator[str]:
    for name, about in builtin_adapters().items():
        key, model = about.get("key"), about.get("model")
        lines = [f"{key} · {model}", about["key_page"]] if key else [about["about"].rstrip(".")]
        for number, line in enumerate(lines):
            label = f"    `{name}`" if number == 0 else ""
            first, *rest = wrapped(line, 25)
            yield f"{label:<24} {first.lstrip()}"
            yield from rest


def _adapter_opts(_: Dump) -> Iterator[str]:
    for name, opt in sorted(adapter_options().items()):
        kinds = f"; {', '.join(opt.kinds)}" if opt.kinds else ""
        yield from wrapped(f"`{name}` ({' or '.join(opt.types)}{kinds})", 4)
        yield from wrapped(opt.description, 8)


def _slash(dump: Dump) -> Iterator[str]:
    for command in dump.slash:
        usage = f"    `/{command.name}{' ' + command.argument if command.argument else ''}`"
        first, *rest = wrapped(command.description, 31)
        yield usage.ljust(30) + " " + first.lstrip()
        yield from rest


def _autocmds(dump: Dump) -> Iterator[str]:
    """Each event under its tag: when it fires, then its fields with type and meaning."""
    for autocmd in dump.autocmds:
        yield f"*{autocmd.name}*"
        yield from wrapped(autocmd.description, 4)
        fields = "; ".join(_field(*field) for field in autocmd.data if field not in _policy_fields(dump))
        yield from wrapped(f"{fields}.", 8) if fields else ()


def _policy_fields(dump: Dump) -> set[tuple[str, str]]:
    """Return the fields with one meaning in every event of a policy: the text before the list explains them."""
    policies = [autocmd for autocmd in dump.autocmds if autocmd.name.startswith(_POLICY_EVENTS)]
    return set.intersection(*(set(autocmd.data) for autocmd in policies))


def _field(name: str, meaning: str) -> str:
    kind, _, text = meaning.partition(": ")
    return f"`{name}` ({kind}): {text}" if text else f"`{name}` ({kind})"


def _highlights(dump: Dump) -> Iterator[str]:
    for name, link, meaning in dump.highlights:
        first, *rest = wrapped(f"`{name}`{'' if link == 'NONE' else f' ({link})'}: {meaning}.", 8)
        yield first[4:]
        yield from rest


def _guarded_files(_: Dump) -> Iterator[str]:
    for reason, patterns in groups():
        yield from wrapped(f"{reason[0].upper()}{reason[1:]}:", 4)
        yield from wrapped(" ".join(patterns), 8)


def _always(_: Dump) -> Iterator[str]:
    for sentence in ALWAYS:
        first, *rest = wrapped(sentence, 2)
        yield f"- {first.lstrip()}"
        yield from rest


def _ours(_: Dump) -> Iterator[str]:
    """Each reason once, with the policies it is in: a step may be in several tiers."""
    for name in policy_names():
        policy = load_policy(name)
        reasons = list(dict.fromkeys(one.why for one in deviations(policy)))
        if policy.ours:
            reasons = [f"{policy.ours}; it follows no document and has no strict form"]
        for number, why in enumerate(reasons):
            label = f"    `{name}`" if number == 0 else ""
            first, *rest = wrapped(f"{why[0].upper()}{why[1:]}.", 22)
            yield f"{label:<21} {first.lstrip()}"
            yield from rest


def _ours_of_gathering(name: PipelineName) -> Iterator[str]:
    for one in load_pipeline(name).deviations():
        yield f"    {one.place}"
        yield from wrapped(f"{one.why[0].upper()}{one.why[1:]}.", 22)


_LISTS: dict[str, Lister] = {
    "options": _options,
    "keymaps": lambda dump: keymap_lines(dump.schema),
    "tools": lambda dump: tool_lines(dump.schema),
    "adapters": _adapters,
    "adapter_opts": _adapter_opts,
    "slash": _slash,
    "autocmds": _autocmds,
    "highlights": _highlights,
    "guarded_files": _guarded_files,
    "ours": _ours,
    "ours_of_ranked": lambda _: _ours_of_gathering("ranked"),
    "ours_of_document": lambda _: _ours_of_gathering("document"),
    "always": _always,
}
