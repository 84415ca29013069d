"""Defines patterns for file names and identifiers in any kind of text."""

from __future__ import annotations

from codecompanion.formats.regex import regex

_EXTENSIONS = (
    "py pyi ts tsx js jsx mjs cjs json jsonl md rst txt toml yaml yml lua vim c h cc cpp hpp cs go rs rb java \
kt php sh bash zsh css scss html xml sql proto cfg ini lock conf env ipynb swift scala ex exs pl pm r jl dart vue \
svelte zig nix cmake mk gradle log csv patch diff snap pony"
)
PATH = regex(
    r"(?<![\w/@.+-])(?:(?:\.{1,2}|~)?/)?(?:[\w@.+-]+/)*[\w@+-][\w@.+-]*\.(?:"
    + "|".join(_EXTENSIONS.split())
    + r")(?![\w-])(?!\.\w)(?!\((?!\d))"
    r"|(?<![\w/@.+-])(?:[\w@.+-]*/)*(?:Makefile|Dockerfile|README|LICENSE)(?:\.[A-Za-z]\w*)*(?![\w/-])(?!\.\w)"
)
NOT_A_FILE = frozenset(
    """console.log Math.log math.log np.log Node.js node.js Vue.js Next.js Chart.js package.path process.env
    import.meta.env null None none undefined true false True False N/A n/a""".split()
)
# Matches a module such as `django.utils.html`: its ending is also a module name, and no file name precedes it.
MODULE = regex(r"[A-Za-z_]\w*(?:\.[a-z_]\w*)*\.[a-z_]\w*\.(?:conf|css|csv|diff|env|html|json|lock|log|rst|sql|xml)")
# Matches an identifier, but not the end of `0x7f3a`.
NAME = regex(r"(?<![A-Za-z0-9_$])[A-Za-z_$][A-Za-z0-9_$]*")
_CODE_LIKE = regex(r".*[a-z0-9][A-Z].*|.*[A-Za-z0-9]_+[A-Za-z0-9].*|[A-Z][A-Za-z]*\d.*|_+[a-z]\w*|[a-z]+\d+\w*")
_HASH = regex(r"(?=.*\d)[0-9a-f]{5,64}")


def is_code_name(name: str) -> bool:
    """Return whether the word can only be an identifier: camelCase, snake_case, or with digits inside."""
    return _CODE_LIKE.fullmatch(name) is not None and _HASH.fullmatch(name) is None
