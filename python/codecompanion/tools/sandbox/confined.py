"""A program as it is started in a sandbox, and how the host talks with the launcher there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Kind = Literal["bubblewrap", "namespaces", "landlock", "sandbox-exec", ""]


class Pipes(msgspec.Struct, frozen=True):
    """The ends that the launcher has: `control` ends its processes, `status` tells how they ended."""

    control: int
    status: int


class Confined(msgspec.Struct, frozen=True):
    """A program as it is started in the sandbox."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
