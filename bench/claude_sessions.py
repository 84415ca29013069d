"""Extracts the Claude Code sessions in a branch of a repository, as transcripts in one folder per developer.

    python -m bench.claude_sessions GIT_DIRECTORY BRANCH FOLDER

Each `full.jsonl` in the branch is a snapshot of a session; the longest snapshot of a session is used. It is split at
each compaction, because the agent then continued from its own summary. Transcripts with fewer than three replies are
left out. entireio/cli, branch entire/checkpoints/v1, gives 337 transcripts of seven developers with 17,389 requests
(November 2026); our parameters were chosen on other sessions of these developers.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from codecompanion.cli.importing import claude_code
from codecompanion.errors import InputError

MIN_REPLIES = 3
_SESSION = re.compile(rb'"sessionId":"([^"]+)"')
_HOME = re.compile(rb'"cwd":"/(?:Users|home)/([\w.-]+)')
_CONTINUED = "This session is being continued from a previous conversation"


def read_sessions(git_directory: Path, branch: str) -> Iterator[tuple[str, bytes]]:
    """Yield (id, lines) of each session, from its longest snapshot."""
    git = ("git", "-C", str(git_directory))
    listed = subprocess.run([*git, "ls-tree", "-r", branch], capture_output=True, text=True, check=True).stdout
    longest: dict[str, bytes] = {}
    for line in listed.splitlines():
        about, _, path = line.partition("\t")
        if not path.endswith("full.jsonl"):
            continue
        blob = subprocess.run([*git, "cat-file", "blob", about.split()[2]], capture_output=True, check=False)
        if blob.returncode:
            print(f"left out: {path} is not in this copy", file=sys.stderr)
            continue
        raw = blob.stdout
        found = _SESSION.search(raw)
        if found and len(raw) > len(longest.get(found[1].decode(), b"")):
            longest[found[1].decode()] = raw
    yield from sorted(longest.items())


def split_at_compactions(messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the messages, split at each compaction."""
    parts: list[list[dict[str, Any]]] = [[]]
    for message in messages:
        if message["role"] == "user" and str(message["content"]).startswith(_CONTINUED):
            parts.append([])
        parts[-1].append(message)
    return [part for part in parts if sum(message["role"] == "assistant" for message in part) >= MIN_REPLIES]


def main() -> None:
    """Write the transcripts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("git_directory", type=Path)
    parser.add_argument("branch")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    written = replies = 0
    for session, raw in read_sessions(options.git_directory, options.branch):
        home = _HOME.search(raw)
        developer = home[1].decode() if home else "unknown"
        try:
            parts = split_at_compactions(claude_code.read(raw, session, []))
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        for number, part in enumerate(parts):
            file = options.folder / developer / f"{session[:8]}-{number}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(json.dumps(message) + "\n" for message in part), "utf-8")
            written, replies = written + 1, replies + sum(message["role"] == "assistant" for message in part)
    print(f"{written} transcripts, {replies:,} requests")


if __name__ == "__main__":
    main()
