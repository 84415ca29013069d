"""`TRANSPORT=sdk`: tests of adapters send their requests through the official clients instead of httpx2.

The same tests then cover both transports: bodies, retries, time limits, errors and cancellation (`make test-sdks`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codecompanion.adapters.base import AdapterSettings
    from codecompanion.adapters.transport.exchange import Exchange

IS_SDK = os.environ.get("TRANSPORT") == "sdk"


def use_sdk() -> None:
    """Let adapters send through the official clients from now on."""
    import msgspec

    from codecompanion.adapters.http import connection
    from codecompanion.adapters.transport.exchange import open_exchange

    def open_through_sdk(settings: AdapterSettings, environ: Mapping[str, str]) -> Exchange:
        return open_exchange(msgspec.structs.replace(settings, transport="sdk"), environ)

    connection.open_exchange = open_through_sdk
