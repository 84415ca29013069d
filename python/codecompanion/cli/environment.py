"""Provides the environment of the command line; keys are read once and then kept only in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from codecompanion.engine.own_memory import wipe_start_environment
from codecompanion.engine.user_environment import UserEnvironment, withdraw_secrets
from codecompanion.errors import InputError

_held: UserEnvironment | None = None


def hold_secrets() -> None:
    """Remove values that look like secrets from this process's environment, which the user's programs can all read."""
    global _held
    _held = withdraw_secrets(os.environ)
    wipe_start_environment(_held.withheld_names())


def user_environment() -> Mapping[str, str]:
    """Return the user's original environment."""
    return os.environ if _held is None else _held


def home_dir() -> Path | None:
    """Return the user's home folder, or None if neither `HOME` nor the system provides it, as in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def cache_dir() -> Path:
    """Return the plugin's subfolder of Neovim's cache folder (`stdpath("cache")`).

    Raises:
        InputError: there is no home folder, and no other folder was configured.
    """
    home = home_dir()
    given = os.environ.get("XDG_CACHE_HOME") or (home and str(home / ".cache"))
    if not given:
        raise InputError("no folder for the index; set HOME or XDG_CACHE_HOME")
    return Path(given) / os.environ.get("NVIM_APPNAME", "nvim") / "codecompanion"
