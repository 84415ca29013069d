"""`python -m codecompanion.engine <rplugin file> [folder]`: the host that `lua/codecompanion/host/init.lua` starts.

The folder is for cached byte code (`module_cache`). With `--check` instead of the file it only reports whether this
Python can run the host (used after an installation). It checks the requirements before importing anything, so that an
unsuitable Python exits with one sentence on stderr.
"""

import gc
import importlib.util
import os
import sys

OLDEST_PYTHON = (3, 11)
NEEDED = ("pynvim", "msgpack", "greenlet", "msgspec", "httpx2", "anyio", "tiktoken", "pathspec")


def find_problem() -> str:
    """Return a sentence saying why the host cannot run under this Python, or "" if it can."""
    if sys.version_info[:2] < OLDEST_PYTHON:
        found = ".".join(str(part) for part in sys.version_info[:3])
        return f"Python 3.11 or newer is required, but {sys.executable} is {found}; run :CodeCompanion install"
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        return f"{', '.join(missing)} {verb} missing from {sys.executable}; run :CodeCompanion install"
    return ""


def main(arguments: list[str]) -> int:
    """Run the host; return its exit status (2: cannot start)."""
    if len(arguments) not in (1, 2):
        print("codecompanion: usage: python -m codecompanion.engine <rplugin file> [folder]", file=sys.stderr)
        return 2
    problem = find_problem()
    if problem:
        print(f"codecompanion: {problem}", file=sys.stderr)
        return 2
    if arguments == ["--check"]:
        return 0
    if len(arguments) > 1 and os.name == "posix":  # on other systems the owner of the file is unknown
        from codecompanion.engine.module_cache import use_module_cache

        use_module_cache(arguments[1])
    gc.disable()  # until shortly after `hello` (`bridge`): imported modules never become garbage
    from pathlib import Path

    from codecompanion.engine.bridge import serve
    from codecompanion.engine.own_memory import close_own_memory, give_up_tracing

    give_up_tracing()
    close_own_memory()
    for name in ("NVIM", "NVIM_LISTEN_ADDRESS"):  # programs of servers and tools could request the keys through these
        os.environ.pop(name, None)
    return serve(Path(arguments[0]).resolve())


if __name__ == "__main__":
    exit_status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(exit_status)  # a tool's or library's thread that hangs must not keep the process alive
