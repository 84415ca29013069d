"""A quick, offline substitute for uv that fails or waits on request, for tests not about installing.

The "environment" it creates is a script that runs the Python of the tests, so that the host really starts in it. Its
output is that of uv 0.13.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SCRIPT = f"""#!/bin/sh
echo "$$ $*" >> "$FAKE_UV_LOG"
case "$*" in
  venv*) for dir in "$@"; do :; done
     mkdir -p "$dir/bin" || exit 2
     printf '#!/bin/sh\\nexec "{sys.executable}" "$@"\\n' > "$dir/bin/python"
     chmod +x "$dir/bin/python" ;;
  "pip install"*)
     echo "Resolved 37 packages in 564ms" >&2
     [ -z "$FAKE_UV_GATE" ] || while [ ! -e "$FAKE_UV_GATE" ] && kill -0 $PPID; do sleep 0.05; done
     [ -z "$FAKE_UV_FAILS" ] || {{ echo "$FAKE_UV_FAILS" >&2; exit 1; }}
     echo "Prepared 37 packages in 1.53s" >&2
     echo "Installed 37 packages in 117ms" >&2
     echo " + pynvim==0.6.0" >&2 ;;
esac
"""


def fake_uv(root: Path, *, gate: Path | None = None, fails: str = "") -> dict[str, str]:
    """Return environment variables that put the fake uv on the PATH.

    With `gate` it waits after resolving until that file exists; `fails` is its output before it fails.
    """
    folder = root / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "uv").write_text(SCRIPT)
    (folder / "uv").chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "FAKE_UV_LOG": str(root / "uv.log"),
        "FAKE_UV_GATE": str(gate or ""),
        "FAKE_UV_FAILS": fails,
    }


def calls(root: Path) -> list[str]:
    """Return the recorded uv calls, each with process id and arguments."""
    log = root / "uv.log"
    return log.read_text().splitlines() if log.exists() else []
