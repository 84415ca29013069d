"""A folder for sandbox tests, outside /tmp and /var/tmp, which the sandbox replaces."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_REPO = Path(__file__).resolve().parents[1]
_OTHERS_INSIDE = (Path("/tmp"), Path("/var/tmp"))


@contextmanager
def folder_outside_tmp(prefix: str) -> Iterator[Path]:
    """Yield a new folder in the checkout, or elsewhere if the checkout is below /tmp.

    Root's home is closed to the other users that some attacks run as.
    """
    base = _REPO / ".cache"
    if any(place in _REPO.parents for place in _OTHERS_INSIDE):
        base = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" if os.getuid() else Path("/opt")
    base.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base)).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
