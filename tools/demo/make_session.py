"""Writes the recorded session that `make demo` plays: `python -m tools.demo.make_session [--check]`.

An invented assistant works for an afternoon on an invented project (`codebase.py`, `story.py`). The tools are fakes
that edit files in memory and answer in the real tools' words (`stand_ins.py`), so every edit really applies and every
later read shows it. The output of commands is composed from the tests in the files. The result is deterministic; the
file is committed, and `--check` reports whether it is up to date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tools.demo.stand_ins import Session
from tools.demo.story import play

OUT = Path(__file__).with_name("demo_session.jsonl")


def record() -> tuple[Session, str]:
    """Return the played session and its transcript."""
    session = Session()
    play(session)
    return session, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in session.lines)


def main() -> int:
    """Write or check the file; return the exit status."""
    session, text = record()
    if "--check" in sys.argv:
        return 0 if OUT.read_text(encoding="utf-8") == text else 1
    OUT.write_text(text, encoding="utf-8")
    users = sum(1 for line in session.lines if line["role"] == "user" and "meta" not in line)
    print(f"{OUT.name}: {len(text.encode()):,} bytes, {users} turns, {session.calls} calls", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
