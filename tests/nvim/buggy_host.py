"""The real host with one bug: a message can provoke an exception that contains the adapter's key.

Started by tests through `python.host_prog` instead of Python; `BUGGY_FILE` names the file with the key.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from codecompanion.session.turn import request_and_reply as exchange

send = exchange.stream_reply


async def stream_or_break(adapter, request, *arguments, **options):
    """Stream the reply, except for a message that provokes the bug."""
    if request.messages[-1].text.startswith("provoke a bug"):
        headers = {"authorization": "Bearer " + Path(os.environ["BUGGY_FILE"]).read_text()}
        raise TypeError(f"a bug with {headers} in it")
    return await send(adapter, request, *arguments, **options)


if __name__ == "__main__":
    exchange.stream_reply = stream_or_break
    from codecompanion.engine import __main__ as entry

    os._exit(entry.main(sys.argv[3:]))  # argv: buggy_host.py -m codecompanion.engine FILE
