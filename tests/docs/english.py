"""Finds phrases that read like a translation, in all text that people or models read here.

    python -m tests.docs.english [KIND ...] [--under PATH] [--per-1000] [--all]

`test_english.py` counts them by kind of text. The list is a minimum: read each sentence aloud as well.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPO = Path(__file__).parents[2]

# Each pattern with the plain way to write it.
PHRASES: dict[str, tuple[str, str]] = {
    "is no": (r"(?<!here )(?<!Here )\b(?:is|are|was|were) no (?!longer|more\b|less\b|matter|such)", "is not a"),
    "stands": (r"\b(?:stands?|stood)\b(?! (?:for|alone|out|in for|by)\b)", "is, appears, is written"),
    "goes along": (r"\b(?:go(?:es|ing)?|went|gone) along\b", "is sent, is attached"),
    "is told": (r"\b(?:is|are|was|were|be|been|being) told\b", "sees, receives, is given"),
    "so many": (r"\b[Ss]o (?:many|much|often|few)\b(?! that\b| as\b)", "this many, up to N times"),
    "holds": (r"\b(?:holds?|held)(?=[.;,:)]| (?:for|if|here|when|only|where|too|until|as long)\b)", "applies"),
    "says it": (r"\bsa(?:ys?|id) it\b", "reports, shows"),
    "is taken for": (r"\b(?:is|are|be|was|were|been|not) taken (?:for|as|to be)\b", "counts as"),
    "of itself": (r"\bof (?:itself|themselves|herself|himself)\b", "reports its own"),
    "by hand": (r"\bby hand\b", "manual, manually"),
    "anew": (r"\banew\b", "again, re-"),
    "for good": (r"\bfor good\b(?! reason)", "permanently"),
    "is to be": (r"\b(?:is|are|was|were) to be\b", "must be, will be"),
    "is there": (r"(?<=[a-z] )(?:is|are|was|were) there\b(?!\?)", "exists"),
    "comes back": (r"\b(?:comes?|came|coming) back\b", "is returned, reappears"),
    "takes back": (r"\b(?:takes?|took|taken|taking) back\b", "reverts, undoes"),
    "made of": (
        r"\b(?:makes?|made|making) [\w ]{0,20}?(?<!use )(?<!sense )(?:out )?of (?:it|them|this|that)\b",
        "turns into",
    ),
    "out of reach": (r"\bout of reach\b", "unreachable, unavailable"),
    "in vain": (r"\bin vain\b", "without effect"),
    "likewise": (r"\b[Ll]ikewise\b", "also"),
    "the same": (r"\bthe same(?=[.;,:)])", "name the thing"),
    "what": (
        r"(?:^|(?<=[.:;,(] )|(?<=\b(?:of|to|by|in|on) )|(?<=\b(?:for|and|but|all|not) )"
        r"|(?<=\b(?:from|with|that|than|into|only) ))"
        r"[Ww]hat (?!to\b|if\b|about\b|kind\b)(?![^.!?]*\?)",
        "a noun: attachments, removed messages, the model",
    ),
    "who": (r"(?:^|(?<=[.:;] ))Who(?:ever)? (?![^.!]*\?)|\bwho(?:ever|soever)\b", "a noun: users, anyone who"),
    "that which": (r"\bthat which\b|\bthose which\b", "a noun"),
    "shall": (r"\b[Ss]hall\b", "should, must, will"),
    "need be": (r"\bneeds? (?:not )?be\b|\bneed not\b", "must be, does not have to"),
    "nobody": (r"\b[Nn]obody\b", "no one, or the active form"),
    "thereof": (r"\b(?:where|there|here)(?:of|by|with|upon|from|fore)\b(?<!herefore)", "which, it"),
    "the like": (r"\b(?:and|or) the like\b", "similar, such as"),
    "be it": (r"\b[Bb]e it\b", "whether"),
    "as yet": (r"\bas yet\b|\bby now\b|\buntil now\b", "so far, already"),
    "of ours": (r"\bof (?:ours|mine|yours)\b(?! marks?)", "our"),
}  # fmt: skip
KINDS = ("strings", "docstrings", "comments", "documents", "prompts", "test names")
_DOCUMENTS = ("README.md", "CHANGELOG.md", "doc", "tools/docgen/parts")
# Somebody else's words, lists of such words, and generated pages.
_NOT_OURS = re.compile(
    r"doc/codecompanion\.txt|doc/compared-documents\.md|words_left|glossary|tests/docs/\w*english"
    r"|tests/docs/test_words|lua/codecompanion/types\.lua|prompts/refusals\.toml"
)
# Their strings are lists and patterns of words that others write; the last one has a sentence of stored chats.
_LISTS_OF_WORDS = re.compile(
    r"context/message_facts/(?:demands|noise|sentence_similarity|stated_facts)\.py|adapters/errors/overflow_figures\.py"
    r"|codecompanion/summary_frame\.py"
)
_PYTHON_COMMENT = re.compile(r"^\s*#(?!!) ?(.+)|  # (.+)$")
_LUA_TEXT = re.compile(
    r"--\[\[(?P<block>.*?)\]\]|--(?P<comment>[^\n]*)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')",
    re.DOTALL,
)


@dataclass(frozen=True)
class Text:
    """A piece of prose: its kind, file, line of its first character, and words."""

    kind: str
    path: str
    line: int
    words: str


@dataclass(frozen=True)
class Found:
    """A phrase that was found, and its place."""

    phrase: str
    text: Text
    line: int
    shown: str


def find(text: Text) -> Iterator[Found]:
    """Yield the listed phrases found in a text."""
    for phrase, (pattern, _) in PHRASES.items():
        for match in re.finditer(pattern, text.words, re.MULTILINE):
            start = text.words.rfind("\n", 0, match.start()) + 1
            end = text.words.find("\n", match.end())
            shown = text.words[start : end if end >= 0 else None].strip()
            yield Found(phrase, text, text.line + text.words.count("\n", 0, match.start()), shown[:160])


@cache
def texts() -> tuple[Text, ...]:
    """Return all texts that people or models read."""
    return tuple(_texts())


def _texts() -> Iterator[Text]:
    for path in _files("python", "rplugin", "bench", "tools", "tests", suffixes={".py"}):
        yield from _python(path)
    for path in _files("lua", "plugin", "ftplugin", "build.lua", "lazy.lua", suffixes={".lua"}):
        yield from _lua(path)
    for path in _files(*_DOCUMENTS, suffixes={".md", ".txt"}):
        yield Text("documents", _name(path), 1, path.read_text(encoding="utf-8"))
    for path in _files("python/codecompanion/prompts", suffixes={".md", ".toml"}):
        yield Text("prompts", _name(path), 1, path.read_text(encoding="utf-8"))


def _files(*roots: str, suffixes: set[str]) -> Iterator[Path]:
    for root in map(REPO.joinpath, roots):
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if path.suffix in suffixes and not _NOT_OURS.search(_name(path)):
                yield path


def _name(path: Path) -> str:
    return path.relative_to(REPO).as_posix()


def _python(path: Path) -> Iterator[Text]:
    name, source = _name(path), path.read_text(encoding="utf-8")
    has_own_strings = name.startswith(("python", "rplugin")) and not _LISTS_OF_WORDS.search(name)
    tree = ast.parse(source)
    docs = set()
    for node in ast.walk(tree):
        # Of a module, class or function, and those below a constant or field.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docs.add(id(node.value))
            yield Text("docstrings", name, node.lineno, node.value.value)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Text("test names", name, node.lineno, node.name.removeprefix("test_").replace("_", " "))
    if has_own_strings:
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
            if is_text and " " in node.value:
                yield Text("strings", name, node.lineno, node.value)
    for number, line in enumerate(source.splitlines(), 1):
        if comment := _PYTHON_COMMENT.search(line):
            yield Text("comments", name, number, comment[1] or comment[2])


def _lua(path: Path) -> Iterator[Text]:
    name, source = _name(path), path.read_text(encoding="utf-8")
    for match in _LUA_TEXT.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        if match["string"] is not None:
            if " " in match["string"]:
                yield Text("strings", name, line, match["string"][1:-1])
        else:
            yield Text("comments", name, line, (match["block"] or match["comment"] or "").lstrip("- "))


def main(argv: list[str] | None = None) -> None:
    """Print the phrases by kind, or their number per 1,000 words."""
    parser = argparse.ArgumentParser(prog="tests.docs.english")
    parser.add_argument("kinds", nargs="*", help=", ".join(KINDS))
    parser.add_argument("--under", default="", help="only below this path")
    parser.add_argument("--per-1000", action="store_true", help="print figures only")
    parser.add_argument(
        "--all", action="store_true", help="print every text that has a word, to be read from top to bottom"
    )
    chosen = parser.parse_args(argv)
    for kind in chosen.kinds or KINDS:
        read = [text for text in texts() if text.kind == kind and text.path.startswith(chosen.under)]
        hits = [hit for text in read for hit in find(text)]
        words = sum(len(text.words.split()) for text in read)
        print(f"{kind}: {len(hits)} in {words:,} words, {1000 * len(hits) / max(words, 1):.1f} in 1,000")
        if chosen.all:
            for text in read:
                if re.search(r"[A-Za-z]{2,} [A-Za-z]", text.words):
                    print(f"  {text.path}:{text.line}: {text.words}")
        elif not chosen.per_1000:
            for hit in hits:
                print(f"  {hit.text.path}:{hit.line}: [{hit.phrase} → {PHRASES[hit.phrase][1]}] {hit.shown}")


if __name__ == "__main__":
    main(sys.argv[1:])
