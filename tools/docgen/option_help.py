"""The lists of options, keys and tools in the help file.

A section with a heading has a tag. Its options are entries below it, named relative to it; a small section inside it
has no heading of its own. An option gets its own tag only if another part of the help file links to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from tools.docgen.schema import Option, walk
from tools.docgen.wrapping import WIDTH, wrapped

TAG = "codecompanion."
_MAX_DEFAULT_LENGTH = 60
_MAX_SIGNATURE = 36  # characters; `types.lua` has all of them
_MIN_REPEATED = 60  # characters of a description that is printed once and named afterwards
_KEY_TEXT = 42  # column of the description of a key
_MIN_SECTION = 6  # options of a section with a heading of its own


def option_lines(schema: Option, linked: Collection[str]) -> Iterator[str]:
    """Yield the entries of all options in schema order; `linked` has the paths that need a tag."""
    yield from _Entries(linked).section("", schema)


class _Entries:
    """Generates option entries and remembers the descriptions printed so far."""

    def __init__(self, linked: Collection[str]) -> None:
        self._linked = linked
        self._printed: dict[str, str] = {}

    def section(self, path: str, section: Option) -> Iterator[str]:
        """Yield the heading and entries of a section, then its subsections that have a heading."""
        later: list[tuple[str, Option]] = []
        entries = list(self._entries(path, "", section, later))
        if entries or path in self._linked or _is_plain(section):
            if path:
                yield from _heading(path)
                yield from wrapped(_about(section), 4, 4)
            yield from entries
            yield ""
        for inner_path, inner in later:
            yield from self.section(inner_path, inner)

    def _entries(self, heading: str, inside: str, section: Option, later: list[tuple[str, Option]]) -> Iterator[str]:
        yield from _names_elsewhere(inside, section)
        yield from _instances(inside, section)
        tool_names = {path for tool in section.children[:1] if tool.tool for path, _ in walk(tool)}
        for child in section.children:
            name = f"{inside}{child.name}"
            path = f"{heading}.{name}" if heading else name
            if child.keymap or child.entry or _is_own_key(path) or _is_instance(child, section):
                continue
            if _is_key(child):
                yield from wrapped(f"`{name}` = {_keys_text(child) or 'no key'}: {child.description}.", 4, 8)
            elif child.tool:
                yield from self._more_of_tool(name, path, child, tool_names)
            elif child.fields is None and child.values is None:
                yield from self._option(path, name, child)
            elif not heading or self._has_heading(path, child):
                later.append((path, child))
            else:
                if child.name != "opts":
                    yield from self._tag(path)
                    yield from wrapped(f"`{name}`: {_about(child)}", 4, 8)
                yield from self._entries(heading, f"{name}.", child, later)

    def _has_heading(self, path: str, section: Option) -> bool:
        if section.name == "opts" and "<" in path:
            return False
        return path.count(".") < 2 or _count(section) >= _MIN_SECTION

    def _more_of_tool(self, name: str, path: str, tool: Option, common: set[str]) -> Iterator[str]:
        """Yield the options that only this tool has; those of every tool are listed as `<tool>`."""
        for inner_path, inner in walk(tool):
            if inner_path not in common and not inner.children:
                yield from self._option(f"{path}.{inner_path}", f"{name}.{inner_path}", inner)

    def _option(self, path: str, name: str, option: Option) -> Iterator[str]:
        yield from self._tag(path)
        text = option.description
        if len(text) >= _MIN_REPEATED:
            first = self._printed.setdefault(text, path)
            here = path.removesuffix(name)
            text = text if first == path else f"Like `{first.removeprefix(here)}`."
        long = len(option.default_text) > _MAX_DEFAULT_LENGTH
        yield from wrapped(f"`{name}`{_value(option)}: {text}", 4, 8)
        if long:
            yield from wrapped(f"Default: {option.default_text}", 8, 10)

    def _tag(self, path: str) -> Iterator[str]:
        if path in self._linked:
            tag = f"*{TAG}{path}*"
            yield " " * max(0, WIDTH - len(tag)) + tag


def _is_plain(section: Option) -> bool:
    """Return whether a section directly contains keymaps, whose entries are listed elsewhere."""
    return any(one.keymap for one in section.children)


def _is_key(option: Option) -> bool:
    return not option.keymap and bool(option.fields) and option.children[0].name == "modes"


def _keys_text(option: Option) -> str:
    """Return the keys of a mapping as they are written in the lists: Normal mode without a mode letter."""
    modes = (option.fields or [])[0]
    keys = {mode.name: " ".join(_listed(mode.default)) for mode in modes.fields or () if mode.default}
    return ", ".join(found if mode == "n" else f"{mode} {found}" for mode, found in keys.items())


def _count(section: Option) -> int:
    """Return the number of options in a section, including its nested sections."""
    return sum(1 for _, one in walk(section) if not one.children and not one.entry)


def _names_elsewhere(inside: str, section: Option) -> Iterator[str]:
    """Yield references to the names that are listed elsewhere: adapters and tools."""
    for names, where in (
        ([one.name for one in section.children if one.entry and not one.name.startswith("<")], "adapter-names"),
        ([one.name for one in section.children if one.tool], "tools"),
    ):
        if names:
            yield f"    Built in: |codecompanion-{where}|."
    for tool in section.children[:1]:
        if tool.tool:
            for path, inner in walk(tool):
                if not inner.children:
                    text = f"`{inside}<tool>.{path}` ({_types(inner)}): {inner.description}"
                    yield from wrapped(text, 4, 8)


def _instances(inside: str, section: Option) -> Iterator[str]:
    """Yield the named sections that have the same options as the free key, with their own defaults."""
    by_defaults: dict[str, list[str]] = {}
    for child in section.children:
        if _is_instance(child, section) and section.values:
            free = dict(walk(section.values))
            own = [
                f"`{path}` = {option.default_text}"
                for path, option in walk(child)
                if not option.children and option.default_text not in ("", free[path].default_text)
            ]
            by_defaults.setdefault(", ".join(own), []).append(child.name)
    for defaults, names in by_defaults.items():
        free_name = section.values.name if section.values else ""
        text = f"{_listed_names(inside, names)}: Built in, with the options of `{inside}{free_name}`."
        yield from wrapped(f"{text} Defaults: {defaults}." if defaults else text, 4, 8)


def _is_instance(child: Option, section: Option) -> bool:
    """Return whether a section has the same options as the free key beside it, so that they are printed only once."""
    free = section.values
    if free is None or child is free or not child.children or child.keymap or child.tool:
        return False
    return [path for path, _ in walk(child)] == [path for path, _ in walk(free)]


def _is_own_key(path: str) -> bool:
    return path.endswith("keymaps.<name>")


def _listed_names(inside: str, names: list[str]) -> str:
    return ", ".join(f"`{inside}{name}`" for name in names)


def keymap_lines(schema: Option) -> Iterator[str]:
    """Yield the table of chat buffer keys: name, keys (Normal mode without a mode letter), description."""
    for path, option in walk(schema):
        if not option.keymap:
            continue
        label = f"    `{path.rpartition('.')[2]}`".ljust(25) + _keys_text(option)
        # Neovim hides the two backticks of a label, so the lines below it begin two columns further left.
        if len(label) < _KEY_TEXT:
            first, *rest = wrapped(option.description, _KEY_TEXT, _KEY_TEXT - 2)
            yield f"{label:<{_KEY_TEXT}}{first.lstrip()}"
            yield from rest
        else:
            yield label
            yield from wrapped(option.description, _KEY_TEXT - 2)


def tool_lines(schema: Option) -> Iterator[str]:
    """Yield the table of the tools with their defaults."""
    for path, option in walk(schema):
        if not option.tool:
            continue
        defaults = {inner.name: inner.default for _, inner in walk(option)}
        asks = "asks" if defaults["require_approval_before"] else "runs"
        yolo = "" if defaults["allowed_in_yolo_mode"] else ", even in YOLO mode"
        seconds = int(defaults["timeout"]) // 1000
        first, *rest = wrapped(f"{option.description} ({asks}{yolo}; {seconds} s)", 22, 20)
        yield f"    `{path.rpartition('.')[2]}`".ljust(21) + " " + first.lstrip()
        yield from rest


def _heading(path: str) -> Iterator[str]:
    tag = f"*{TAG}{path}*"
    if len(path) + 2 + len(tag) <= WIDTH:
        yield path + " " * (WIDTH - len(path) - len(tag)) + tag
    else:
        yield tag


def _about(section: Option) -> str:
    return f"{section.description} `false` switches it off." if section.disable else section.description


def _value(option: Option) -> str:
    """Return the default and types of an option, as they are written after its name."""
    default = option.default_text
    if not default or len(default) > _MAX_DEFAULT_LENGTH:
        return f" ({_types(option)})"
    others = _types(option, default)
    return f" = `{default}` ({others})" if others else f" = `{default}`"


def _types(option: Option, default: str = "") -> str:
    """Return the types of an option, leaving out those that are obvious from the default."""
    if option.adapter:
        return "adapter"
    kinds = [kind for name in option.types for kind in _kinds(option, name) if kind != f"`{default}`"]
    if default and option.enum and len(option.types) == 1:
        return f"or {_joined(kinds, ', ')}" if kinds else ""
    least = f"≥ {option.min:g}" if option.min else ""
    if default and kinds in (["boolean"], ["string"], ["number"], ["integer"]):
        return least
    return _joined(kinds, " or ") + (f", {least}" if least else "")


def _joined(words: list[str], last: str) -> str:
    return last.join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _kinds(option: Option, kind: str) -> list[str]:
    if kind == "string" and option.enum:
        return [f'`"{value}"`' for value in option.enum]
    if kind == "function" and option.signature and len(option.signature) <= _MAX_SIGNATURE:
        return [f"`{option.signature}`"]
    if kind == "list" and option.items:
        return ["list" if option.items.types == ["string"] else f"list of {_joined(option.items.types, ' or ')}"]
    return [kind]


def _listed(keys: Any) -> list[str]:
    return [keys] if isinstance(keys, str) else list(keys)
