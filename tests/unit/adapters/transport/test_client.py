"""Request URLs: below `base_url`, with both query strings; and the import of the transport."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import httpx2
import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.transport.client import HttpClient
from codecompanion.formats.byte_limits import MODEL_LIST

BASE = "https://gateway.example/v1"


async def address(base_url: str, path: str) -> str:
    """Return the address of a request for `path`."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={})

    settings = AdapterSettings(name="a", kind="openai_compatible", base_url=base_url)
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    client = HttpClient(http, settings)
    await client.send("GET", path, headers={}, limits=httpx2.Timeout(5), accepts=MODEL_LIST)
    await client.aclose()
    return str(seen[0].url)


@pytest.mark.parametrize(
    ("base_url", "path", "wanted"),
    [
        (BASE, "/models", f"{BASE}/models"),
        (f"{BASE}/", "models?limit=1000", f"{BASE}/models?limit=1000"),
        (f"{BASE}?api-version=1", "/models?limit=1000", f"{BASE}/models?limit=1000&api-version=1"),
        (f"{BASE}?api-version=1", "/c?url=https%3A%2F%2Fq", f"{BASE}/c?url=https%3A%2F%2Fq&api-version=1"),
        (BASE, "https://other.example/list?a=1", "https://other.example/list?a=1"),
    ],
)
async def test_the_queries_of_a_path_and_of_base_url_are_both_sent(base_url, path, wanted):
    assert await address(base_url, path) == wanted


@pytest.mark.parametrize("chunks", [(b'{"a":1}',), (b'{"a":', b"1", b"}")])
async def test_a_body_in_chunks_is_sent_like_one_in_one_piece(chunks: tuple[bytes, ...]) -> None:
    """The length is sent as well, because not every server understands chunked transfer coding."""
    seen: list[tuple[dict[str, str], bytes]] = []

    async def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append((dict(request.headers), await request.aread()))
        return httpx2.Response(200, json={})

    settings = AdapterSettings(name="a", kind="openai_compatible", base_url=BASE)
    client = HttpClient(httpx2.AsyncClient(transport=httpx2.MockTransport(answer)), settings)
    await client.send("POST", "/x", headers={}, limits=httpx2.Timeout(5), accepts=MODEL_LIST, content=chunks)
    await client.aclose()
    headers, body = seen[0]
    assert body == b'{"a":1}'
    assert headers["content-length"] == "7"
    assert headers["content-type"] == "application/json"
    assert "transfer-encoding" not in headers


def test_the_transport_knows_its_version_without_reading_its_metadata() -> None:
    """Reading it takes 10 ms of every start."""
    code = (
        "import sys; from codecompanion.adapters.transport.client import import_transport as go; go(); import httpx2;"
        "print(httpx2.__version__, 'importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [version("httpx2"), "False"]
