"""Text to fit and test the token estimator on, gathered from the files of a machine; none of it is stored.

The recipe: files under the given roots, sorted and drawn with a fixed seed, one slice each, sorted into kinds by their
extension; translations from gettext catalogues; and samples made from those (diffs, tool output, JSON arguments …) or
from a seeded generator (hex, CSV, logs …). The same machine gives the same samples.

The committed weights were fitted with the default roots plus checkouts of ten public repositories: BurntSushi/ripgrep,
gin-gonic/gin, google/gson, pmndrs/zustand, trpc/trpc, nvim-telescope/telescope.nvim, tpope/vim-fugitive,
sinatra/sinatra, App-vNext/Polly, doggy8088/Learn-Git-in-30-days (`--root` is their folder).
"""

from __future__ import annotations

import base64
import difflib
import gettext
import gzip
import html
import json
import os
import random
import re
import sys
import sysconfig
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SEED = 20251121
PER_KIND = 60

ENDINGS = {
    ".py": "python", ".pyi": "python stubs", ".lua": "lua", ".vim": "vim script", ".rs": "rust", ".go": "go",
    ".ts": "typescript", ".tsx": "typescript", ".js": "javascript", ".mjs": "javascript", ".java": "java",
    ".cs": "c#", ".rb": "ruby", ".php": "php", ".c": "c", ".h": "c", ".hpp": "c++", ".cpp": "c++", ".pl": "perl",
    ".sh": "shell", ".cmake": "cmake", ".sql": "sql", ".json": "json", ".yaml": "yaml", ".yml": "yaml",
    ".toml": "toml", ".xml": "xml", ".svg": "svg", ".html": "html", ".css": "css", ".md": "markdown",
    ".mdx": "markdown", ".rst": "rst", ".csv": "csv", ".patch": "diff", ".log": "log", ".tcl": "tcl",
}  # fmt: skip
LANGUAGES = "zh_CN zh_TW ja ko ru de fr pl es pt_BR uk ar he hi th tr cs vi el".split()
CODE = frozenset("python lua typescript javascript rust go java c c# ruby".split())
# Kinds of text in a coding chat, besides code: output of tools, text of people and models.
TOOL_OUTPUT = ("read with line numbers", "search results", "listing", "test run", "diff", "log", "traceback")
PROSE = ("markdown", "prose", "short message", "help file")


@dataclass(frozen=True, slots=True)
class Sample:
    """One text. `group` is the file it came from: cross-validation never splits a group."""

    kind: str
    group: str
    text: str


def default_roots() -> list[Path]:
    """Return the folders that every development machine is likely to have."""
    names = [sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "/usr/share", "/usr/lib/node_modules"]
    return [Path(name) for name in names if Path(name).is_dir()]


def find_files(roots: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the files under the roots by kind, each list sorted."""
    found: dict[str, set[Path]] = defaultdict(set)
    for root in roots:
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in {".git", "__pycache__", "locale-langpack"})
            for name in names:
                path = Path(folder, name)
                kind = _kind_of(path)
                if kind:
                    found[kind].add(path)
    return {kind: sorted(paths) for kind, paths in sorted(found.items())}


def _kind_of(path: Path) -> str | None:
    name = path.name
    if name.endswith((".min.js", ".min.css")):
        return "minified"
    if name.endswith(".mo") and path.parent.name == "LC_MESSAGES":
        language = path.parent.parent.name
        return f"text {language}" if language in LANGUAGES else None
    if "zh-tw" in path.parts and name.endswith(".md"):
        return "markdown zh_TW"
    if "zh-cn" in path.parts and name.endswith(".md"):
        return "markdown zh_CN"
    if re.search(r"rust/html/(?:[\w-]+/)?(ja|ko|zh)/", str(path)) or "rust/html/book" in str(path):
        found = re.search(r"/(ja|ko|zh)/", str(path))
        return f"book {found.group(1)}" if found else "prose"
    if name.endswith(".txt"):
        return "help file" if path.parent.name == "doc" and "nvim" in str(path) else "prose"
    if name.endswith(".1.gz") and "/man1/" in str(path):
        return "man page"
    return ENDINGS.get(path.suffix)


def read(path: Path) -> str:
    """Return the text of a file in the form of its kind; empty when it is not text."""
    try:
        if path.suffix == ".mo":
            with path.open("rb") as file:
                catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            return "\n".join(sorted({text for text in catalogue.values() if isinstance(text, str)}))
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes()).decode("utf-8")
        text = path.read_text("utf-8")
    except (OSError, ValueError, EOFError):
        return ""
    if path.suffix == ".html" and "/rust/html/" in str(path):
        body = re.sub(r"(?s)<(script|style|nav|head)\b.*?</\1>", " ", text)
        return re.sub(r"\n\s*\n+", "\n\n", html.unescape(re.sub(r"<[^>]+>", "", body))).strip()
    return text


def cut(text: str, draw: random.Random) -> str:
    """Return a slice of 100–8,000 characters that starts at a line."""
    size = int(2 ** draw.uniform(6.7, 13))
    if len(text) <= size:
        return text
    start = draw.randrange(len(text) - size)
    line = text.rfind("\n", 0, start) + 1
    return text[line : line + size] if start - line < 400 else text[start : start + size]


def collect(roots: Sequence[Path], per_kind: int = PER_KIND, seed: int = SEED) -> list[Sample]:
    """Return the samples of all kinds, in a fixed order."""
    samples: list[Sample] = []
    for kind, paths in find_files(roots).items():
        draw = random.Random(f"{seed} {kind}")
        draw.shuffle(paths)
        taken = 0
        for path in paths:
            text = read(path)
            if len(text) < 80:
                continue
            rounds = max(1, min(8, per_kind // len(paths)))
            samples += [Sample(kind, str(path), cut(text, draw)) for _ in range(rounds)]
            taken += rounds
            if taken >= per_kind:
                break
    return samples + list(_derived(samples, per_kind, seed)) + list(_generated(per_kind, seed))


def read_transcripts(folder: Path, per_family: int = 4 * PER_KIND, seed: int = SEED) -> list[Sample]:
    """Return messages and call arguments of recorded chats, as kind `chat <folder>`; [] when there are none."""
    samples: list[Sample] = []
    for family in sorted(path for path in folder.glob("*") if path.is_dir()):
        draw = random.Random(f"{seed} {family.name}")
        texts = [(path, text) for path in sorted(family.glob("*.jsonl")) for text in sent_texts(path) if text]
        for path, text in draw.sample(texts, min(per_family, len(texts))):
            samples.append(Sample(f"chat {family.name}", str(path), cut(text, draw)))
    return samples


def sent_texts(path: Path) -> list[str]:
    """Return every string of a recorded chat that is sent to the model."""
    texts = []
    for line in path.read_text("utf-8").splitlines():
        message = json.loads(line)
        content = message.get("content") or ""
        texts.append(content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content))
        for call in message.get("tool_calls") or ():
            texts += [call["function"]["name"], call["function"]["arguments"]]
    return texts


def _derived(samples: Sequence[Sample], per_kind: int, seed: int) -> Iterator[Sample]:
    """Yield the output of tools for files: numbered lines, search results, diffs, JSON arguments, tracebacks."""
    code = [sample for sample in samples if sample.kind in CODE]
    makers: dict[str, Callable[[Sample, random.Random], str]] = {
        "read with line numbers": _numbered,
        "search results": _searched,
        "diff": _diffed,
        "tool arguments": _arguments,
        "traceback": _traceback,
        "lower case, no spaces": lambda sample, _: re.sub(r"\W+", "", sample.text).lower(),
        "upper case": lambda sample, _: sample.text.upper(),
        "minified json": lambda sample, draw: json.dumps({"path": sample.group, "lines": sample.text.split("\n")}),
    }
    for kind, make in makers.items():
        draw = random.Random(f"{seed} {kind}")
        for sample in draw.sample(code, min(per_kind, len(code))):
            yield Sample(kind, sample.group, make(sample, draw))
    prose = [sample for sample in samples if sample.kind in {"markdown", "rst"}]
    draw = random.Random(f"{seed} short")
    for sample in draw.sample(prose, min(2 * per_kind, len(prose))):
        sentences = re.findall(r"[A-Z][^.!?\n`|*]{15,200}[.!?]", sample.text)
        if sentences:
            yield Sample("short message", sample.group, " ".join(sentences[: draw.randint(1, 4)]))


def _numbered(sample: Sample, draw: random.Random) -> str:
    first, style = draw.randint(1, 900), draw.choice(["{:6}\t{}", "{:4}: {}", "{}|{}"])
    return "\n".join(style.format(first + n, line) for n, line in enumerate(sample.text.split("\n")))


def _searched(sample: Sample, draw: random.Random) -> str:
    name = "/".join(Path(sample.group).parts[-3:])
    hits = [(n, line.strip()) for n, line in enumerate(sample.text.split("\n"), draw.randint(1, 500)) if line.strip()]
    return "\n".join(f"{name}:{n}:{line[:160]}" for n, line in hits if draw.random() < 0.5) or name


def _diffed(sample: Sample, draw: random.Random) -> str:
    old = sample.text.split("\n")
    new = [line.replace("self", "this") if draw.random() < 0.1 else line for line in old if draw.random() > 0.06]
    name = "/".join(Path(sample.group).parts[-3:])
    return "\n".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="", n=3)) or name


def _arguments(sample: Sample, draw: random.Random) -> str:
    half = len(sample.text) // 2
    key = draw.choice(["old_string", "old_str", "search"]), draw.choice(["new_string", "new_str", "replace"])
    value = {"path": "/".join(Path(sample.group).parts[-3:]), key[0]: sample.text[:half], key[1]: sample.text[half:]}
    return json.dumps(value, indent=draw.choice([None, None, 2]))


def _traceback(sample: Sample, draw: random.Random) -> str:
    lines = [line.strip() for line in sample.text.split("\n") if len(line.strip()) > 8] or ["pass"]
    folder = str(Path(sample.group).parent)
    frames = [
        f'  File "{folder}/{draw.choice("core api views base util".split())}.py", line {draw.randint(3, 999)}, in '
        f"{draw.choice('run main get_value __init__ handle process'.split())}\n    {draw.choice(lines)[:110]}"
        for _ in range(draw.randint(2, 14))
    ]
    return "Traceback (most recent call last):\n" + "\n".join(frames) + f"\nValueError: {draw.choice(lines)[:80]}"


def _generated(per_kind: int, seed: int) -> Iterator[Sample]:
    """Yield samples of kinds that are rare in files. Every sample is its own group."""
    makers: dict[str, Callable[[random.Random], str]] = {
        "hex": lambda draw: draw.randbytes(draw.randint(20, 1500)).hex(),
        "base64": lambda draw: base64.b64encode(draw.randbytes(draw.randint(20, 2000))).decode(),
        "numbers": _numbers,
        "listing": _listing,
        "test run": _test_run,
        "log": _log,
        "emoji": lambda draw: "".join(draw.choice("😀🎉🚀🔥✅❌👍🤖🧪📦 ab") for _ in range(draw.randint(10, 400))),
        "ids": lambda draw: "\n".join(str(uuid.UUID(int=draw.getrandbits(128))) for _ in range(draw.randint(1, 60))),
        "repeated": lambda draw: draw.choice(" =-*#.aA0_\n~é中/") * int(2 ** draw.uniform(3, 12)),
        "rules and tables": _table,
    }
    for kind, make in makers.items():
        draw = random.Random(f"{seed} {kind}")
        for number in range(max(20, per_kind // 2)):
            yield Sample(kind, f"{kind} {number}", make(draw))


def _numbers(draw: random.Random) -> str:
    width, digits = draw.randint(2, 12), draw.randint(0, 6)
    rows = [[f"{draw.uniform(-1e4, 1e4):.{digits}f}" for _ in range(width)] for _ in range(draw.randint(3, 60))]
    return "\n".join(draw.choice([",", ", ", "\t", " "]).join(row) for row in rows)


_WORDS = "api app auth base cache client config core db engine errors events files graph handlers http index io jobs \
json lib loader main models net parser policy query render router schema server session store sync task test tokens \
tools types ui user utils view widgets worker".split()


def _path(draw: random.Random) -> str:
    folders = [draw.choice(_WORDS) for _ in range(draw.randint(1, 4))]
    return "/".join(folders) + "_" + draw.choice(_WORDS) + draw.choice([".py", ".ts", ".lua", ".go", ".md", ".json"])


def _listing(draw: random.Random) -> str:
    count = draw.randint(5, 150)
    if draw.random() < 0.5:
        return "\n".join(sorted(_path(draw) for _ in range(count)))
    return "\n".join(
        f"-rw-r--r-- 1 root root {draw.randint(10, 99999):6} Nov {draw.randint(1, 30):2} {draw.randint(0, 23):02}:17 "
        f"{_path(draw)}"
        for _ in range(count)
    )


def _test_run(draw: random.Random) -> str:
    rows = [
        f"tests/{_path(draw)}::test_{draw.choice(_WORDS)}_{draw.choice(_WORDS)} "
        f"{draw.choice(['PASSED'] * 9 + ['FAILED'])} [{n:3}%]"
        for n in range(draw.randint(4, 80))
    ]
    end = f"{len(rows)} passed, {draw.randint(0, 9)} failed in {draw.uniform(0.1, 99):.2f}s"
    return f"{'=' * 30} test session starts {'=' * 30}\n" + "\n".join(rows) + f"\n{'=' * 27} {end} {'=' * 27}"


def _log(draw: random.Random) -> str:
    return "\n".join(
        f"2025-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}T{draw.randint(0, 23):02}:{draw.randint(0, 59):02}:"
        f"{draw.randint(0, 59):02}.{draw.randint(0, 999):03}Z {draw.choice(['INFO', 'DEBUG', 'WARN', 'ERROR'])} "
        f"[{draw.choice(_WORDS)}.{draw.choice(_WORDS)}] {draw.choice(_WORDS)} {draw.choice(_WORDS)} took "
        f"{draw.randint(1, 9999)}ms id={draw.getrandbits(32):08x}"
        for _ in range(draw.randint(3, 80))
    )


def _table(draw: random.Random) -> str:
    width = draw.randint(2, 6)
    rows = ["| " + " | ".join(draw.choice(_WORDS).ljust(10) for _ in range(width)) + " |" for _ in range(20)]
    rule = "|" + "|".join(["-" * 12] * width) + "|"
    return "\n".join([rows[0], rule, *rows[1:], "─" * draw.randint(10, 80), "=" * draw.randint(10, 80)])


def compose_chats(samples: Sequence[Sample], count: int, coding: bool, seed: int = SEED) -> list[list[Sample]]:
    """Return whole chats of 10–80 messages. A coding chat has one main language and related text."""
    by_kind: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_kind[sample.kind].append(sample)
    draw = random.Random(f"{seed} chats {coding}")
    languages = [kind for kind in sorted(CODE) if by_kind[kind]]
    chats = []
    for _ in range(count):
        if coding:
            own = draw.choice(languages)
            shares = {own: 30, "tool arguments": 15, "short message": 20, "json": 4, "yaml": 2, "shell": 2}
            shares |= dict.fromkeys(TOOL_OUTPUT, 6) | dict.fromkeys(PROSE, 5) | {draw.choice(languages): 6}
        else:
            main = draw.sample(sorted(by_kind), min(6, len(by_kind)))
            shares = dict.fromkeys(main, 10)
        kinds = [kind for kind in shares if by_kind[kind]]
        picks = draw.choices(kinds, [shares[kind] for kind in kinds], k=draw.randint(10, 80))
        chats.append([draw.choice(by_kind[kind]) for kind in picks])
    return chats


if __name__ == "__main__":
    print(len(collect([Path(name) for name in sys.argv[1:]] or default_roots())))
