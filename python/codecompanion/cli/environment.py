"""The environment of the command line: its keys are read once, then held in memory only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from codecompanion.engine.own_memory import wipe_start_environment
from codecompanion.engine.user_environment import UserEnvironment, withdraw_secrets

_held: UserEnvironment | None = None


def hold_secrets() -> None:
    """Take what looks like a secret out of this process's environment, where every program of the user can read it."""
    global _held
    _held = withdraw_secrets(os.environ)
    wipe_start_environment(_held.told_names())


def user_environment() -> Mapping[str, str]:
    """Return the environment as the user gave it."""
    return os.environ if _held is None else _held


def cache_dir() -> Path:
    """Return the folder Neovim keeps what it can make again in (`stdpath("cache")`), with our part of it."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / os.environ.get("NVIM_APPNAME", "nvim") / "codecompanion"
