"""`python -m tools.pictures [--only NAME …] [--out FOLDER]`: retake the pictures; called by `make pictures`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from pathlib import Path

from tools.pictures.album import ALBUM, FOLDER, MAX_BYTES


def main() -> int:
    """Take the requested pictures; return 1 if a scene failed or the total is too large."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="pictures whose name contains one of these")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for picture in ALBUM:
        if options.only and not any(word in picture.name for word in options.only):
            continue
        out = options.out / picture.name
        with tempfile.TemporaryDirectory(prefix="pictures-", ignore_cleanup_errors=True) as root:
            try:
                picture.take(out, Path(root))
            except Exception:
                traceback.print_exc()
                failed += 1
                continue
        print(f"{out}  {out.stat().st_size // 1024} kB")
    size = sum(path.stat().st_size for path in options.out.iterdir())
    if size > MAX_BYTES:
        print(f"{options.out}: {size // 1024} kB, more than {MAX_BYTES // 1024} kB")
    return 1 if failed or size > MAX_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
