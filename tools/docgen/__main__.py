"""`python -m tools.docgen [--check]`."""

from __future__ import annotations

import argparse
import difflib
import sys

from tools.docgen.generated import ROOT, generate
from tools.docgen.schema import SchemaUnreadable


def main(argv: list[str] | None = None) -> int:
    """Write the generated files, or compare them with `--check`; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.docgen", description="Generate help and types.")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 when a file is out of date")
    check = parser.parse_args(argv).check
    try:
        files = generate()
    except SchemaUnreadable as error:
        print(f"docgen: {error}", file=sys.stderr)
        return 2
    stale = 0
    for path, wanted in files.items():
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        if found == wanted:
            continue
        stale += 1
        name = path.relative_to(ROOT)
        if check:
            print(f"{name} is out of date: run `make doc` and commit it", file=sys.stderr)
            changes = difflib.unified_diff(found.splitlines(), wanted.splitlines(), "committed", "generated", "", "", 0)
            print("\n".join(f"  {line}" for line in list(changes)[2:22]), file=sys.stderr)
        else:
            path.write_text(wanted, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
