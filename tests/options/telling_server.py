"""An MCP server over stdio whose tool `mine` returns its folder and the variable MINE after 0.1 s."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request, or its error."""
    method = message["method"]
    if method == "initialize":
        about = {"serverInfo": {"name": "telling", "version": "0"}, "capabilities": {"tools": {}}}
        return {"result": {"protocolVersion": "2025-11-25", **about}}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        return {"result": {"tools": [{"name": "mine", "description": "Tells.", "inputSchema": schema}]}}
    if method == "tools/call":
        time.sleep(0.1)
        text = f"{Path.cwd()} {os.environ.get('MINE', '')}"
        return {"result": {"content": [{"type": "text", "text": text}]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}), flush=True)
