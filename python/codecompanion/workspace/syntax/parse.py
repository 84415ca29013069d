r"""Parses source text for definitions, references and imports (R-222, R-225, R-257).

Line numbers count only `\n`, as editors do. A definition includes its decorators and the comments directly above it. No
text causes an error: parts that a grammar cannot parse just yield fewer definitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.model.code import Definition, DefinitionKind, ImportStatement, ParsedFile, Reference
from codecompanion.workspace.syntax.grammars import Grammar, load_grammar
from codecompanion.workspace.syntax.languages import Language, languages

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SIGNATURE_CHARS = 200
_MAX_NAME_BYTES = 120
_MAX_PREFIX_BYTES = 80
_ONLY_WORDS = regex(rb"[\w\s@]*")
_SPACE = regex(r"\s+")
_SEPARATOR = regex(r"::|:|\.")
_WORDS_OF_A_COMMAND = regex(r"[A-Za-z_][\w-]*")
_FEW_NODES = 4_000
_SAMPLED_NODES = 64
_SIBLINGS_OF_A_LEVEL = 10  # siblings that cost as much as one level of depth
_MAX_WORK = 30_000_000  # a one-megabyte file has about 6,000,000
# If patterns overlap, the more specific type counts.
_PRIORITY = {"variable": 2, "type": 1}
_TYPES = ("class", "interface", "type")


class _Found(msgspec.Struct):
    """A definition or scope whose parent is not known yet. Bytes and rows are 0-based, `last` is inclusive."""

    kind: str
    name: str
    receiver: str
    start_byte: int
    end_byte: int
    first: int
    last: int
    line: int
    signature: str


class _Lines:
    """Source text split into lines, to look up the text of a node and the position of a line."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lines = source.split(b"\n")

    def text(self, node: Node) -> str:
        """Return the text of a node."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def rows(self, node: Node) -> tuple[int, int]:
        """Return the first and last row of a node; if it ends before a line's first byte, it ends on the line above."""
        first, end = node.start_point.row, node.end_point
        return first, max(first, end.row - 1 if end.column == 0 else end.row)

    def starts_its_line(self, node: Node) -> bool:
        """Return whether only white space precedes the node on its line."""
        point = node.start_point
        return not self.lines[point.row][: point.column].strip()

    def signature(self, node: Node, end: int) -> str:
        """Return a definition up to its body, on one line and truncated.

        The body starts at byte `end`; 0 means that there is no body, so the first line is used.
        """
        begin, column = node.start_byte, node.start_point.column
        if column <= _MAX_PREFIX_BYTES and _ONLY_WORDS.fullmatch(self.source, begin - column, begin):
            begin -= column  # `export default`, `public static`
        if not end:
            end = self.source.find(b"\n", node.start_byte, node.end_byte)
            end = node.end_byte if end < 0 else end
        text = self.source[begin : min(end, begin + 4 * MAX_SIGNATURE_CHARS)].decode("utf-8", "ignore")
        text = _SPACE.sub(" ", text).rstrip(" :{=").lstrip()
        return text if len(text) <= MAX_SIGNATURE_CHARS else text[: MAX_SIGNATURE_CHARS - 1] + "…"


def parse(text: str, language: str) -> ParsedFile:
    """Return the text parsed with the language's grammar; without a grammar, the result contains only the language."""
    grammar = load_grammar(language) if language else None
    if grammar is None:
        return ParsedFile(language=language)
    from tree_sitter import Parser

    source = text.encode("utf-8", "replace")
    tree = Parser(grammar.language).parse(source)
    if _is_too_deep(tree.root_node):
        return ParsedFile(language=language)
    lines, entry = _Lines(source), languages()[language]
    definitions, imports, named_at = _tags(grammar, tree.root_node, lines, entry)
    references = tuple(sorted(_references(grammar, tree.root_node, lines, entry, named_at), key=lambda one: one.line))
    return ParsedFile(language, tuple(definitions), references, tuple(imports), is_parsed=True)


def _is_too_deep(root: Node) -> bool:
    """Return whether queries would take seconds or minutes; their cost is nodes times depth, or nodes times siblings.

    Ten thousand open brackets are enough for that; brackets that are never closed are siblings in one error node. A
    sample of the nodes suffices to detect this. A running query cannot be stopped (the progress callback of tree-sitter
    0.26 crashes).
    """
    count = root.descendant_count
    if count < _FEW_NODES:
        return False
    cursor, depths = root.walk(), 0
    for index in range(0, count, count // _SAMPLED_NODES):
        cursor.goto_descendant(index)
        depths += cursor.depth
        if cursor.goto_parent() and cursor.node is not None and cursor.node.has_error:
            depths += cursor.node.child_count // _SIBLINGS_OF_A_LEVEL
    return count * depths / _SAMPLED_NODES > _MAX_WORK


def _tags(
    grammar: Grammar, root: Node, lines: _Lines, entry: Language
) -> tuple[list[Definition], list[ImportStatement], set[int]]:
    """Return the definitions, the imports, and the byte positions at which names of definitions start."""
    from tree_sitter import QueryCursor

    found: dict[int, _Found] = {}
    leading: dict[int, int] = {}
    imported: dict[int, tuple[Node, list[str]]] = {}
    for _, captures in QueryCursor(grammar.tags).matches(root):
        for key, nodes in captures.items():
            if key == "leading":
                for node in nodes:
                    if lines.starts_its_line(node):
                        first, last = lines.rows(node)
                        leading[last] = first
            elif key == "import":
                names = imported.setdefault(nodes[0].start_byte, (nodes[0], []))[1]
                names += [lines.text(node) for node in captures.get("import.name", ())]
            elif key == "scope" or key.startswith("definition."):
                _add(found, key.removeprefix("definition."), nodes[0], captures, lines, entry)
    imported_rows = {node.start_point.row for node, _ in imported.values()}
    for at in [at for at, one in found.items() if one.kind == "variable" and one.first in imported_rows]:
        del found[at]
    definitions = list(_nested(found, leading))
    return definitions, _imports(imported, definitions, lines, entry), set(found)


def _add(
    found: dict[int, _Found], kind: str, node: Node, captures: dict[str, list[Node]], lines: _Lines, entry: Language
) -> None:
    """Add a definition unless its name is already known as a more specific type."""
    name = captures["name"][0]
    at = name.start_byte if kind != "scope" else -node.start_byte - 1
    known = found.get(at)
    if known is not None and _PRIORITY.get(known.kind, 0) <= _PRIORITY.get(kind, 0):
        return
    inner = node
    while node.parent is not None and node.parent.type in entry.wrappers:
        node = node.parent
    body, head = captures.get("body"), captures.get("head")
    end = head[0].end_byte if head else body[0].start_byte if body else 0
    first, last = lines.rows(node)
    receiver = captures.get("receiver")
    found[at] = _Found(
        kind=kind,
        name=_SPACE.sub(" ", lines.text(name)[:_MAX_NAME_BYTES]).strip(" #\"'"),
        receiver=_SEPARATOR.sub(".", lines.text(receiver[0])[:_MAX_NAME_BYTES]) if receiver else "",
        start_byte=node.start_byte,
        end_byte=node.end_byte,
        first=first,
        last=last,
        line=name.start_point.row,
        signature=lines.signature(inner, end),
    )


def _nested(found: dict[int, _Found], leading: dict[int, int]) -> Iterator[Definition]:
    """Yield the definitions in order, each with its enclosing names and the comments above it."""
    around: list[_Found] = []
    variables: set[tuple[str, str]] = set()
    for one in sorted(found.values(), key=lambda one: (one.start_byte, -one.end_byte)):
        while around and around[-1].end_byte <= one.start_byte:
            around.pop()
        parents = [*(each.name for each in around), *([one.receiver] if one.receiver else [])]
        parent, kind = ".".join(parents), one.kind
        if kind == "function" and around and around[-1].kind in ("class", "interface", "scope"):
            kind = "method"
        if kind == "variable" and len(one.name) > 1 and one.name.isupper():
            kind = "constant"
        is_repeated = one.kind == "variable" and (parent, one.name) in variables
        if one.kind == "variable":
            variables.add((parent, one.name))
        if kind != "scope" and one.name and not is_repeated:
            first = one.first
            while first - 1 in leading and leading[first - 1] < first:
                first = leading[first - 1]
            exact = cast("DefinitionKind", kind)
            yield Definition(one.name, exact, first + 1, one.last + 1, one.line + 1, one.signature, parent)
        around.append(one)


def _imports(
    imported: dict[int, tuple[Node, list[str]]], definitions: list[Definition], lines: _Lines, entry: Language
) -> list[ImportStatement]:
    """Return the imports that apply to the whole file, without those inside functions."""
    inside = {row for one in definitions if one.kind in ("function", "method") for row in range(one.start, one.end + 1)}
    statements = []
    for _, (node, names) in sorted(imported.items(), key=lambda item: item[0]):
        first, last = lines.rows(node)
        if first + 1 in inside:
            continue
        text = b"\n".join(lines.lines[first : last + 1]).decode("utf-8", "replace")
        if entry.import_names:
            matched = regex(entry.import_names).finditer(text)
            names = [next((name for name in match.groups() if name), "") for match in matched]
        statements.append(ImportStatement(first + 1, last + 1, text, tuple(dict.fromkeys(filter(None, names)))))
    return statements


def _references(
    grammar: Grammar, root: Node, lines: _Lines, entry: Language, named_at: set[int]
) -> Iterator[Reference]:
    """Yield every name used, except the file's own locals and names without meaning."""
    if grammar.names is None:
        return
    from tree_sitter import QueryCursor

    source, noise = lines.source, entry.noise
    captured = QueryCursor(grammar.names).captures(root)
    bound = captured.get("local", [])
    local = {source[node.start_byte : node.end_byte] for node in bound}
    members = {node.start_byte for node in captured.get("member", ())}
    skipped = named_at | {node.start_byte for node in (*bound, *captured.get("label", ()))}
    for node in captured.get("name", ()):
        start, end = node.start_byte, node.end_byte
        if start in skipped or not 1 < end - start <= _MAX_NAME_BYTES:
            continue
        word = source[start:end]
        if word in local and start not in members and node.type == "identifier":
            continue
        name = word.decode("utf-8", "replace")
        if name not in noise and _WORDS_OF_A_COMMAND.fullmatch(name):
            yield Reference(name, node.start_point.row + 1)
