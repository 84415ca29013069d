"""`python -m tests.conform [arguments for pytest]`: run the tests that the rows name, then print the table."""

from __future__ import annotations

import sys

import pytest

from tools.conform.claims import read_all


def main(arguments: list[str]) -> int:
    """Run each claimed test once; return pytest's exit status, which is 1 if a row is not shown."""
    tests = sorted({test for _, claim in read_all() if claim for test in claim.tests})
    return int(pytest.main(["-q", "--conform", *arguments, *tests]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
