"""`grep_search`: finds lines that contain a string or match a regular expression.

The walk of the workspace lists the files; ripgrep searches them if it is on PATH, else our own Python process
(`grep_worker.py`; a process can be killed if a regular expression runs away). Both print the same records, so the
result does not depend on the program.
"""

from __future__ import annotations

import asyncio
import base64
import heapq
import re
import sys
from collections.abc import Container, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import msgspec

from codecompanion.errors import CodeCompanionError, ToolError
from codecompanion.formats import typed
from codecompanion.formats.find_program import find_program
from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.formats.text_files import printable, read_text
from codecompanion.tools.builtin import DEFAULT_LINES, MAX_FILE_BYTES
from codecompanion.tools.builtin.file_search import compile_glob, matches
from codecompanion.tools.builtin.wording import is_secret, missing_file, one_line, path_below
from codecompanion.tools.commands.command_environment import clean_environment
from codecompanion.tools.file_changes.file_change import is_there
from codecompanion.tools.files.disk import Check, in_thread
from codecompanion.tools.process import run_program
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput

MAX_LINE_CHARS = 300
_BATCH_CHARS = 100_000
_WORKER = Path(__file__).with_name("grep_worker.py")
_RIPGREP_CAUSE = regex(r"^error: (.+)$", re.MULTILINE)
_METACHARACTERS = regex(r"[\\|.*+?()\[\]{}^$]")


class _Files(msgspec.Struct, frozen=True):
    """The files to search: paths relative to the root, in order; the number of too large files; the files with keys."""

    root: Path
    names: list[str]
    too_large: int
    secret: tuple[str, ...] = ()


class _Text(msgspec.Struct, omit_defaults=True):
    text: str | None = None
    bytes: str | None = None

    def value(self) -> str:
        """Return the decoded value; invalid bytes become surrogates."""
        if self.text is not None:
            return self.text
        return base64.b64decode(self.bytes or "").decode("utf-8", "surrogateescape")


class _Span(msgspec.Struct):
    start: int
    end: int


class _Detail(msgspec.Struct):
    path: _Text | None = None
    lines: _Text | None = None
    line_number: int | None = None
    submatches: list[_Span] = []
    binary_offset: int | None = None


class _Record(msgspec.Struct):
    type: str
    data: _Detail


@cache
def _decoder() -> msgspec.json.Decoder[_Record]:
    return typed.json_decoder(_Record)


class _Hits:
    """Collects the first hits in file and line order, and counts them all, in bounded memory."""

    def __init__(self, files: _Files, limit: int) -> None:
        self._order = {name: index for index, name in enumerate(files.names)}
        self._limit = limit
        self._rest = b""
        self._file: list[tuple[int, int, str]] = []
        self._in_file = 0
        self._first: list[tuple[int, int, str]] = []
        self.lines = 0
        self.files = 0

    def add_output(self, chunk: bytes) -> None:
        """Add a chunk of the search program's output."""
        if b"\n" not in chunk:
            self._rest += chunk
            return
        *complete, self._rest = (self._rest + chunk).split(b"\n")
        for line in complete:
            self._add(_decoder().decode(line))

    def first(self) -> list[tuple[int, int, str]]:
        """Return the hits as `(file index, line number, line)`, sorted."""
        return sorted((-index, -number, line) for index, number, line in self._first)

    def _add(self, record: _Record) -> None:
        detail = record.data
        if record.type == "begin":
            self._file, self._in_file = [], 0
        elif record.type == "match" and detail.path and detail.lines:
            self._in_file += 1
            index = self._order[detail.path.value().removeprefix("./")]
            if len(self._file) < self._limit:
                start = detail.submatches[0].start if detail.submatches else 0
                self._file.append((-index, -(detail.line_number or 0), _cut(detail.lines.value(), start)))
        elif record.type == "end" and self._in_file and detail.binary_offset is None:
            self.lines += self._in_file
            self.files += 1
            if len(self._first) < self._limit or self._file[0] > self._first[-1]:
                self._first = heapq.nlargest(self._limit, [*self._first, *self._file])


def _cut(line: str, start_byte: int) -> str:
    """Return the line for the result, shortened around the match if it is long."""
    line = line.rstrip("\r\n")
    if len(line) <= MAX_LINE_CHARS:
        return printable(line)
    at = len(line.encode("utf-8", "surrogateescape")[:start_byte].decode("utf-8", "ignore"))
    begin = max(0, min(at - MAX_LINE_CHARS // 3, len(line) - MAX_LINE_CHARS))
    end = begin + MAX_LINE_CHARS
    return printable(f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}")


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    files, unsaved = await in_thread(lambda check: _files(arguments, context, check))
    hits = _Hits(files, arguments.get("max_results", DEFAULT_LINES))
    on_disk = [name for name in files.names if name not in unsaved]
    await _search_all(arguments, files.root, on_disk, hits)
    if unsaved:
        import tempfile  # slow to import: only for a search

        with tempfile.TemporaryDirectory() as folder:
            await asyncio.to_thread(_write_out, Path(folder), unsaved)
            await _search_all(arguments, Path(folder), list(unsaved), hits)
    shown, withheld = await asyncio.to_thread(_without_secrets, files, hits.first(), unsaved, context)
    return _output(arguments, files, hits, shown, withheld, unsaved)


_Hit = tuple[int, int, str]


def _without_secrets(
    files: _Files, shown: list[_Hit], unsaved: dict[str, str], context: ToolContext
) -> tuple[list[_Hit], tuple[str, ...]]:
    """Remove secret values from the hits; return the remaining hits, and the files whose lines are withheld."""
    kept, withheld, lines = list[_Hit](), list[str](), dict[int, list[str]]()
    for index in dict.fromkeys(index for index, _, _ in shown):
        name = files.names[index]
        try:
            whole = unsaved[name] if name in unsaved else read_text(files.root / name, MAX_FILE_BYTES).text
        except (CodeCompanionError, OSError, ValueError):
            continue
        text, why = context.without_secrets(whole, name)
        if why:
            withheld.append(name)
        elif text != whole:
            lines[index] = text.split("\n")
    for index, number, line in shown:
        if index in lines:
            found = lines[index][number - 1 : number]
            kept.append((index, number, _cut(found[0], 0) if found else ""))
        elif files.names[index] not in withheld:
            kept.append((index, number, line))
    return kept, tuple(withheld)


async def _search_all(arguments: dict[str, Any], root: Path, names: list[str], hits: _Hits) -> None:
    """Search the named files below the root with ripgrep or `grep_worker.py`."""
    import tempfile

    try:
        ripgrep = find_program("rg", root)
    except FileNotFoundError:
        ripgrep = ""
    if ripgrep:
        for batch in _batches(names):
            await _search([*_ripgrep(ripgrep, arguments), *batch], root, hits, None)
    elif names:
        with tempfile.TemporaryFile() as piped:
            piped.write(_worker_input(arguments, names))
            piped.seek(0)
            await _search([sys.executable, "-I", str(_WORKER)], root, hits, piped)


def _write_out(folder: Path, unsaved: dict[str, str]) -> None:
    """Write the text of the editor's unsaved files to a folder, under their own names, so that they can be searched."""
    for name, text in unsaved.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))


def _files(arguments: dict[str, Any], context: ToolContext, check: Check) -> tuple[_Files, dict[str, str]]:
    """Return the files to search, and the contents of those with unsaved changes in the editor."""
    root = context.resolve(".")
    start = context.resolve(arguments.get("path", "."))
    if not is_there(start, context):
        raise missing_file(start, context)
    only = compile_glob(arguments["include"], root) if "include" in arguments else None
    opened = context.opened.files
    found = (
        [start]
        if start.is_file() or str(start) in opened
        else context.walk(start, include_ignored=arguments.get("include_ignored", False))
    )
    names, secret, too_large = list[str](), list[str](), 0
    unsaved: dict[str, str] = {}
    base = root if start == root or root in start.parents else start if start.is_dir() else start.parent
    for path in found:
        check()
        name = path_below(base, path)
        if only is not None and not matches(only, name):
            continue
        if is_secret(path, context):
            secret.append(name)
            continue
        if str(path) in opened:
            text = opened[str(path)].text
            if text is None:
                too_large += 1
            else:
                unsaved[name] = text
                names.append(name)
            continue
        try:
            size = path.lstat().st_size
        except OSError:
            continue
        if size > MAX_FILE_BYTES:
            too_large += 1
        else:
            names.append(name)
    return _Files(base, names, too_large, tuple(secret)), unsaved


def _batches(names: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    chars = 0
    for name in names:
        if batch and chars + len(name) > _BATCH_CHARS:
            yield batch
            batch, chars = [], 0
        batch.append(f"./{name}")
        chars += len(name) + 4
    if batch:
        yield batch


def _ripgrep(program: str, arguments: dict[str, Any]) -> list[str]:
    case = "--ignore-case" if arguments.get("ignore_case") else "--case-sensitive"
    kind = "--engine=auto" if arguments.get("is_regex") else "--fixed-strings"
    # Without --no-mmap a NUL late in a file would not make it binary.
    fixed = ["--no-config", "--no-ignore", "--no-mmap", "--no-messages", "--json", "--crlf"]
    return [program, *fixed, case, kind, "--regexp", arguments["query"], "--"]


def _worker_input(arguments: dict[str, Any], names: Sequence[str]) -> bytes:
    query = arguments["query"] if arguments.get("is_regex") else re.escape(arguments["query"])
    head = msgspec.json.encode({"query": query, "ignore_case": bool(arguments.get("ignore_case"))})
    return head + b"\n" + b"\0".join(name.encode("utf-8", "surrogateescape") for name in names)


async def _search(argv: list[str], root: Path, hits: _Hits, piped: IO[bytes] | None) -> None:
    import tempfile

    with tempfile.TemporaryFile() as errors:
        ended = await run_program(
            argv,
            cwd=root,
            env=clean_environment({}, root),
            on_output=hits.add_output,
            stdin=piped,
            stderr=errors,
        )
        if ended.code not in (0, 1):
            errors.seek(0)
            problem = errors.read(2000).decode("utf-8", "replace").strip()
            # ripgrep also exits with 2 if a file vanished during the search; this is not reported (--no-messages) and
            # not a failure.
            if problem or ended.code != 2:
                cause = _RIPGREP_CAUSE.search(problem)
                raise ToolError(f"The search failed: {cause[1] if cause else problem or f'exit code {ended.code}'}.")


def _output(
    arguments: dict[str, Any],
    files: _Files,
    hits: _Hits,
    shown: list[_Hit],
    withheld: tuple[str, ...],
    unsaved: Container[str],
) -> ToolOutput:
    summary = f"{counted(hits.lines, 'hit')} in {counted(hits.files, 'file')}" if hits.lines else "no hits"
    lines = [f"{summary}:" if hits.lines else _nothing(arguments, files)]
    last = -1
    for index, number, line in shown:
        if index != last:
            note = " [unsaved in the editor]" if files.names[index] in unsaved else ""
            lines.append(files.names[index].encode("utf-8", "replace").decode() + note)
            last = index
        lines.append(f"  {number}: {line}")
    if hits.lines > len(hits.first()):
        lines.append(
            f"[the first {len(shown):,} are shown; narrow the search with path or include, or raise max_results]"
        )
    if files.too_large:
        lines.append(f"[{counted(files.too_large, 'file')} over {MAX_FILE_BYTES // 1_000_000} MB not searched]")
    for names, which in ((files.secret, "not searched"), (withheld, "lines not shown")):
        if names:
            shown_names = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
            lines.append(f"[{which}, as they may contain keys or passwords: {shown_names}; read_file asks the user]")
    return ToolOutput(text="\n".join(lines), summary=summary)


def _nothing(arguments: dict[str, Any], files: _Files) -> str:
    text = f"No hits for {arguments['query']!r} in {counted(len(files.names), 'file')}."
    if not arguments.get("is_regex") and _METACHARACTERS.search(arguments["query"]):
        text += " It was searched as plain text; set is_regex for a regular expression."
    return text


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    return f'grep_search "{one_line(arguments["query"])}"'


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question for the user, or None if the call may run without approval."""
    return None
