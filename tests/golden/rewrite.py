"""Rewrites the records from the current code: `python -m tests.golden.rewrite [name…]`; without a name, all."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

from tests.machine_state import clean_the_environment


def main(wanted: list[str]) -> int:
    """Write the records of the given stories; print the ones that changed."""
    home = Path(tempfile.mkdtemp(prefix="codecompanion-golden-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    clean_the_environment(home)
    from tests.golden.record import RECORDS, difference, names, path_of, play

    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"there is no story {', '.join(unknown)}", file=sys.stderr)
        return 1
    RECORDS.mkdir(exist_ok=True)
    for name in wanted or names():
        try:
            now = play(name)
        except AssertionError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        if difference(name, now):
            path_of(name).write_text(now, encoding="utf-8")
            print(f"written: {path_of(name).name}")
    if not wanted:
        for path in RECORDS.glob("*.json"):
            if path.stem not in names():
                path.unlink()
                print(f"removed: {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
