"""Searches files line by line, as a separate program: `python -I grep_worker.py < input`.

Standard input: one line of JSON `{query, ignore_case}`, then the paths, separated by NUL. Standard output: the records
of `rg --json` that `grep_search` reads. The exit status is 2, with one sentence on standard error, if the query is not
a regular expression. It uses only the standard library, so it runs without the package.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from typing import Any


def main() -> int:
    """Search the files named on standard input."""
    head, _, names = sys.stdin.buffer.read().partition(b"\n")
    wanted = json.loads(head)
    try:
        pattern = re.compile(wanted["query"], re.IGNORECASE if wanted["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"the regular expression is not valid: {error}\n")
        return 2
    for name in names.split(b"\0"):
        if name:
            _search_file(name, pattern)
    sys.stdout.flush()
    return 0


def _search_file(name: bytes, pattern: re.Pattern[str]) -> None:
    path = _text(name)
    begun = False
    for number, line, start in _matches(name, pattern):
        if not begun:
            _record("begin", {"path": path})
            begun = True
        spans = [{"start": start, "end": start}]
        _record("match", {"path": path, "lines": _text(line), "line_number": number, "submatches": spans})
    if begun:
        _record("end", {"path": path, "binary_offset": None})


def _matches(name: bytes, pattern: re.Pattern[str]) -> Iterator[tuple[int, bytes, int]]:
    """Yield `(line number, line, byte offset of the match)` for a text file, nothing for a binary or unreadable one."""
    content = _read(name)
    if content[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
        content = content.decode("utf-16", "replace").encode("utf-8", "surrogatepass")
    if b"\0" in content:
        return
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, 1):
        text = line.removesuffix(b"\r").decode("utf-8", "surrogateescape")
        match = pattern.search(text)
        if match:
            yield number, line, len(text[: match.start()].encode("utf-8", "surrogateescape"))


def _read(name: bytes) -> bytes:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""


def _text(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(content).decode("ascii")}


def _record(kind: str, detail: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"type": kind, "data": detail}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
