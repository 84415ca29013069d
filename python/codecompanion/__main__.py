"""Runs the command line for `python -m codecompanion`. If this Python lacks its packages, prints the program to run."""

from __future__ import annotations

import sys
from pathlib import Path

OLDEST_PYTHON = (3, 11)


def find_problem(error: ModuleNotFoundError | None) -> str:
    """Return an error message if this Python cannot run the command line, with the program to run instead, else ""."""
    if sys.version_info[:2] < OLDEST_PYTHON:
        why = "Python 3.11 or newer is required"
    elif error is not None:
        why = f"{error.name} is missing from {sys.executable}"
    else:
        return ""
    program = Path(__file__).resolve().parents[2] / "bin" / "codecompanion"
    return f"{why}; run {program}, which uses the plugin's Python" if program.exists() else why


def run() -> int:
    """Run the command line; return its exit status."""
    problem = find_problem(None)
    try:
        from codecompanion.cli.__main__ import run_program
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("codecompanion"):
            raise
        problem = problem or find_problem(error)
    except (SyntaxError, ImportError):
        if not problem:
            raise
    if problem:
        print(f"codecompanion: {problem}", file=sys.stderr)
        return 1
    return run_program()


if __name__ == "__main__":
    sys.exit(run())
