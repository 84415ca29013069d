"""Loads the user's own functions, by file or module; errors in their code never stop the host."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from codecompanion.errors import ConfigError


def load_function(where: str, key: str) -> Callable[..., Any]:
    """Return a function by `module.path:name` or `path/to/file.py:name`. Runs the user's code: call it in a thread.

    Raises:
        ConfigError: the function cannot be loaded, or is not a function; the message gives the file and line.
    """
    place, _, name = where.rpartition(":")
    try:
        module = _from_file(Path(place), key) if place.endswith(".py") else importlib.import_module(place)
        found = getattr(module, name, None)
    except ConfigError:
        raise
    except BaseException as error:  # the user's code: a file that calls sys.exit() must not end the host
        raise ConfigError(key, f"{place} cannot be loaded: {format_error(error)}") from error
    if found is None:
        raise ConfigError(key, f"there is no {name} in {place}")
    if not callable(found) or inspect.isclass(found):
        raise ConfigError(key, f"{name} in {place} is not a function")
    return found  # type: ignore[no-any-return]


def _from_file(path: Path, key: str) -> Any:
    if not path.is_file():
        raise ConfigError(key, f"there is no file {path}")
    module_name = f"codecompanion_own_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(key, f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look up their module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def format_error(error: BaseException) -> str:
    """Format an error in the user's code as one line, with its location."""
    sentence = " ".join(str(error).split())[:300]
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if len(frames) > 1 else ""
    return f"{type(error).__name__}{': ' if sentence else ''}{sentence}{where}"
