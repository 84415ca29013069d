"""An MCP server built with the official SDK for the 2026 protocol: tools, a resource and a prompt."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("proper", version="1.2.3", instructions="Be kind.")


@server.tool()
def add(one: int, other: int) -> int:
    """Add two numbers."""
    return one + other


@server.resource("note://today", name="today", mime_type="text/plain")
def today() -> str:
    """List today's tasks."""
    return "Water the plants."


@server.prompt()
def greet(name: str, also: str = "") -> str:
    """Greet somebody."""
    return f"Say hello to {name}{' and ' + also if also else ''}."


if __name__ == "__main__":
    server.run()
