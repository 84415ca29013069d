"""Stand-ins for the tools in the demo session, working on files in memory and answering in the real tools' words."""

from __future__ import annotations

import base64
import difflib
import fnmatch
import json
import re
import struct
import zlib
from typing import Any

from tools.demo.codebase import write_files


class Session:
    """The transcript so far, and the project in its current state."""

    def __init__(self) -> None:
        self.files = write_files()
        self.committed = dict(self.files)
        self.lines: list[dict[str, Any]] = []
        self.calls = 0
        self.memories: dict[str, str] = {}

    def attach(self, path: str, tag: str, content: Any) -> None:
        """Attach a file, rules or an image, as the user does before a message."""
        self.lines.append({"role": "user", "content": content, "meta": {"tag": tag, "path": path}})

    def user(self, text: str) -> None:
        """Add a user message."""
        self.lines.append({"role": "user", "content": text})

    def say(self, text: str) -> None:
        """Add a reply without tool calls, which ends the turn."""
        self.lines.append({"role": "assistant", "content": text})

    def work(self, text: str, *calls: tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], tuple[int, str]]) -> None:
        """Add a reply with tool calls, and their results. A command is given with its exit code and output."""
        made, results = [], []
        for name, arguments, *given in calls:
            self.calls += 1
            call_id = f"call_{self.calls:03}"
            function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
            made.append({"id": call_id, "type": "function", "function": function})
            answer = f"exit code {given[0][0]}\n{given[0][1]}" if given else getattr(self, name)(**arguments)
            result: dict[str, Any] = {"role": "tool", "tool_call_id": call_id, "content": answer}
            if given and given[0][0]:
                result["meta"] = {"is_error": True}
            results.append(result)
        self.lines += [{"role": "assistant", "content": text, "tool_calls": made}, *results]

    def read_file(self, path: str, start_line: int = 1, end_line: int | None = None) -> str:
        """Answer as read_file does."""
        lines = self.files[path].split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
        chosen = lines[start_line - 1 : end_line]
        rest = len(lines) - (start_line - 1 + len(chosen))
        note = f"\n[{rest:,} more lines up to line {len(lines)}]" if rest else ""
        return "\n".join(f"{start_line + n}\t{line}" for n, line in enumerate(chosen)) + note

    def grep_search(self, query: str, is_regex: bool = False, path: str = "", include: str = "*",
                    max_results: int = 100) -> str:  # fmt: skip
        """Answer as grep_search does."""
        pattern = re.compile(query if is_regex else re.escape(query))
        found: dict[str, list[str]] = {}
        for name in sorted(self.files):
            if name.startswith(path) and fnmatch.fnmatch(name.rsplit("/", 1)[-1], include):
                hits = [f"  {number}: {line[:300]}" for number, line in enumerate(self.files[name].split("\n"), 1)
                        if pattern.search(line)]  # fmt: skip
                if hits:
                    found[name] = hits
        total, shown = sum(map(len, found.values())), 0
        assert total, query
        lines = [f"{_count(total, 'hit')} in {_count(len(found), 'file')}:"]
        for name, hits in found.items():
            part = hits[: max_results - shown]
            lines += [name, *part] if part else []
            shown += len(part)
        if total > shown:
            lines.append(
                f"[the first {shown:,} are shown; narrow the search with path or include, or raise max_results]"
            )
        return "\n".join(lines)

    def file_search(self, pattern: str) -> str:
        """Answer as file_search does."""
        glob = pattern.replace("**/", "*")
        names = [name for name in sorted(self.files) if fnmatch.fnmatch(name, glob)]
        assert names, pattern
        return "\n".join(names)

    def insert_edit(self, path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
        """Change a file, and answer as insert_edit does."""
        text = self.files[path]
        number = text.count(old_text)
        assert number == 1 or (replace_all and number), (path, old_text, number)
        places = []
        for match in re.finditer(re.escape(old_text), text):
            first = text.count("\n", 0, match.start()) + 1
            last = first + new_text.rstrip("\n").count("\n")
            places.append(f"line {first}" if first == last else f"lines {first} to {last}")
        self.files[path] = text.replace(old_text, new_text)
        return f"Edited {path}: {_count(number, 'replacement')}, now at {', '.join(places)}."

    def create_file(self, path: str, content: str) -> str:
        """Create a file, and answer as create_file does."""
        assert path not in self.files
        self.files[path] = content
        return f"Created {path}: {_count(content.count(chr(10)), 'line')}."

    def get_diagnostics(self, path: str = "") -> str:
        """Answer as get_diagnostics does when there are no problems."""
        return f"The editor reports no problems{f' for {path}' if path else ''}."

    def memory(self, command: str, path: str, file_text: str = "") -> str:
        """Answer as memory does."""
        if command == "create":
            self.memories[path] = file_text
            return f"Created {path}: {_count(file_text.count(chr(10)), 'line')}."
        rows = [f"{name} ({_count(len(text.encode()), 'byte')})" for name, text in sorted(self.memories.items())]
        return "\n".join([f"Files in {path}:", *rows]) if rows else f"{path} is empty: there are no memories yet."

    def diff(self) -> str:
        """Return the output of `git diff`, which covers changed files but not new ones."""
        parts = []
        for path, before in sorted(self.committed.items()):
            if self.files[path] != before:
                lines = difflib.unified_diff(
                    before.split("\n"), self.files[path].split("\n"), f"a/{path}", f"b/{path}", lineterm=""
                )
                parts.append("\n".join([f"diff --git a/{path} b/{path}", *lines]))
        return "\n".join(parts)

    def diff_stat(self) -> str:
        """Return the output of `git diff --stat`."""
        rows, changed = [], [path for path in sorted(self.committed) if self.files[path] != self.committed[path]]
        for path in changed:
            lines = list(difflib.ndiff(self.committed[path].split("\n"), self.files[path].split("\n")))
            added, gone = sum(line[:2] == "+ " for line in lines), sum(line[:2] == "- " for line in lines)
            rows.append(f" {path:<38} | {added + gone:3} {'+' * min(20, added)}{'-' * min(20, gone)}")
        return "\n".join([*rows, f" {len(changed)} files changed"])

    def tests(self, only: str = "", failing: dict[str, str] | None = None, verbose: bool = True) -> tuple[int, str]:
        """Return the exit code and output of a test run over the current test files."""
        failing = failing or {}
        names = []
        for path in sorted(self.files):
            if path.startswith("tests/test_") and only in path:
                names += [f"{path}::{name}" for name in re.findall(r"^def (test_\w+)", self.files[path], re.MULTILINE)]
        assert names
        assert all(any(name.endswith("::" + bad) for name in names) for bad in failing), failing
        bad = [name for name in names if name.split("::")[1] in failing]
        lines = [
            f"{'=' * 30} test session starts {'=' * 30}",
            "platform linux -- Python 3.12.11, pytest-9.0.1, pluggy-1.6.0",
            "rootdir: /home/mara/tidewater",
            "configfile: pyproject.toml",
            f"collected {len(names)} items",
            "",
        ]
        if verbose:
            lines += [
                f"{name} {'FAILED' if name in bad else 'PASSED'} [{100 * n // len(names):3}%]"
                for n, name in enumerate(names, 1)
            ]
        for name in bad:
            lines += [
                "",
                "=" * 35 + " FAILURES " + "=" * 35,
                f"{'_' * 20} {name.split('::')[1]} {'_' * 20}",
                failing[name.split("::")[1]],
            ]
        lines += [f"FAILED {name}" for name in bad]
        took = f"{0.11 + len(names) * 0.013:.2f}s"
        end = f"{len(bad)} failed, {len(names) - len(bad)} passed" if bad else f"{len(names)} passed"
        return (1 if bad else 0), "\n".join([*lines, f"{'=' * 28} {end} in {took} {'=' * 28}"])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


PALETTE = bytes((255, 255, 255, 70, 130, 180, 60, 110, 150, 200, 60, 50))


def board_picture() -> str:
    """Return a picture of the planner's board as a data URL: a row per berth with bars for stays, two of which overlap.

    The image data is stored, not compressed: zlib's output for the same bytes differs between versions.
    """
    width, height = 240, 96
    rows = [bytearray(width // 2) for _ in range(height)]

    def bar(top: int, left: int, right: int, colour: int) -> None:
        for y in range(top, top + 10):
            rows[y][left // 2 : right // 2] = bytes([colour * 17]) * (right // 2 - left // 2)

    for row in range(6):
        bar(row * 16 + 3, 10 + row * 18, 90 + row * 22, 1 + row % 2)
    bar(51, 96, 170, 3)
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    stored = (
        b"\x78\x01\x01" + struct.pack("<HH", len(raw), len(raw) ^ 0xFFFF) + raw + struct.pack(">I", zlib.adler32(raw))
    )

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 4, 3, 0, 0, 0)) + chunk(b"PLTE", PALETTE)
    png = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", stored) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def read(path: str, start: int = 0, end: int = 0) -> tuple[str, dict[str, Any]]:
    """Return a call of read_file."""
    return "read_file", {"path": path} | ({"start_line": start, "end_line": end} if start else {})


def edit(path: str, old: str, new: str, everywhere: bool = False) -> tuple[str, dict[str, Any]]:
    """Return a call of insert_edit."""
    more = {"replace_all": True} if everywhere else {}
    return "insert_edit", {"path": path, "old_text": old, "new_text": new} | more


def grep(query: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """Return a call of grep_search."""
    return "grep_search", {"query": query} | more


def run(command: str, result: tuple[int, str]) -> tuple[str, dict[str, Any], tuple[int, str]]:
    """Return a call of run_command with its output."""
    return "run_command", {"command": command}, result


def package(plural: str, *parts: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that read a package's files."""
    return [read(f"tidewater/{plural}/{part}.py") for part in parts]
