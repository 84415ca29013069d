"""Creates the profile for macOS `sandbox-exec` in Apple's language SBPL: the last matching rule wins."""

from __future__ import annotations

from pathlib import Path

from codecompanion.tools.sandbox import mount_plan

_SYSTEM_HIDDEN = tuple(
    f"~/Library/{name}"
    for name in (
        "Keychains", "Cookies", "Application Support", "Mail", "Messages", "Safari", "Containers", "Group Containers",
    )
)  # fmt: skip


def profile(places: mount_plan.Places, *, network: bool) -> str:
    """Return the profile for a command in a workspace."""
    hidden = [str(path) for path in mount_plan.hidden_places(places)]
    hidden += [str(places.home) + name[1:] for name in _SYSTEM_HIDDEN if Path(str(places.home) + name[1:]).exists()]
    writable = [str(places.private / "tmp"), *mount_plan.written_places(places)]
    guarded = [str(path) for path, writes in mount_plan.repository_places(places.root.resolve()) if not writes]
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        f"(deny file-read* {_below(hidden)})" if hidden else "",
        f"(allow file-read* file-write* {_below(writable)})",
        '(allow file-write* (literal "/dev/null") (literal "/dev/tty") (subpath "/dev/fd"))',
        f"(deny file-write* {_below(guarded)})" if guarded else "",
        "" if network else "(deny network*)",
        "" if network else '(allow network-bind network-inbound (local ip "localhost:*"))',
        "" if network else '(allow network-outbound (remote ip "localhost:*"))',
        '(deny mach-lookup (global-name "com.apple.SecurityServer") (global-name "com.apple.securityd.xpc"))',
        "(deny process-info* (target others))",
        "(deny signal (target others))",
        "(allow signal (target same-sandbox))",
    ]
    return "\n".join(line for line in lines if line)


def _below(paths: list[str]) -> str:
    return " ".join(f'(subpath "{_quoted(path)}")' for path in paths)


def _quoted(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')
