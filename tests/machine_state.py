"""Settings of a developer's machine that must not affect a test run: keys, addresses, folders, colours, sizes.

Child processes inherit the environment, so it is cleaned once for all of them. Proxies and package installer settings
are kept, because tests of other programs may have to download them; this machine needs no proxy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

UNWANTED = re.compile(
    r".*_(API_KEY|API_BASE|BASE_URL|AUTH_TOKEN|ACCESS_TOKEN)"
    r"|(OPENAI|ANTHROPIC|AZURE|GEMINI|GOOGLE|GROQ|MISTRAL|DEEPSEEK|OPENROUTER|OLLAMA|TIKTOKEN|CODECOMPANION|XDG)_.*"
    r"|NVIM(?!_BINS?$).*|N?VIM(INIT|RUNTIME)?|EXINIT|MYVIM.*|LISTEN_ADDRESS"
    r"|GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX|AUTHOR_.*|COMMITTER_.*)"
    r"|MAKE(FLAGS|LEVEL|FILES|OVERRIDES)|MFLAGS"
    r"|LC_.*|LANG|LANGUAGE|TZ|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR.*|EDITOR|VISUAL|PAGER"
    r"|PYTHON(PATH|SAFEPATH|HOME|STARTUP|WARNINGS|UTF8|IOENCODING|OPTIMIZE|DONTWRITEBYTECODE|UNBUFFERED)"
)


def cleaned(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment without settings of this machine; `home` is empty or is emptied by the caller."""
    kept = {name: value for name, value in environment.items() if not UNWANTED.fullmatch(name)}
    old_home = Path(environment.get("HOME", "/"))
    # uv keeps what it has downloaded, wherever home is.
    cache = environment.get("UV_CACHE_DIR") or Path(environment.get("XDG_CACHE_HOME") or old_home / ".cache") / "uv"
    pip = environment.get("PIP_CONFIG_FILE") or old_home / ".config" / "pip" / "pip.conf"
    local = "127.0.0.1,localhost,::1"
    for name in ("NO_PROXY", "no_proxy"):
        kept[name] = ",".join(filter(None, (environment.get(name), local)))
    kept |= {"HOME": str(home), "LC_ALL": "C.UTF-8", "UV_CACHE_DIR": str(cache), "GIT_CONFIG_NOSYSTEM": "1"}
    if "PYENV_ROOT" not in environment and (old_home / ".pyenv").is_dir():
        kept["PYENV_ROOT"] = str(old_home / ".pyenv")
    if Path(pip).is_file():
        kept["PIP_CONFIG_FILE"] = str(pip)
    return kept


def clean_the_environment(home: Path) -> None:
    """Apply the cleaned environment to this process, and so to its children."""
    wanted = cleaned(os.environ, home)
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)
