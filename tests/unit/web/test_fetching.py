"""Pages are fetched only from public addresses, limited in size and time, and become readable text."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Iterator

import pytest

from codecompanion.errors import InputError
from codecompanion.formats import addresses
from codecompanion.formats.addresses import Address, parts_of, why_refused
from codecompanion.web import fetching
from codecompanion.web.fetching import Fetched, Fetcher
from codecompanion.web.page_cache import FRESH_S, MAX_PAGES, PageCache
from codecompanion.web.page_text import page_of
from tests.unit.web.pages import Site, site


@pytest.fixture
def address() -> Iterator[str]:
    """Return the address of a site; only tests may fetch from 127.0.0.1."""
    with site() as found:
        yield found


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore a proxy of the machine that runs the tests."""
    monkeypatch.setattr(fetching, "getproxies", dict)


def all_but_two(found: Address) -> str:
    """Allow 127.0.0.1 and treat 127.0.0.2 as private: two machines for one test."""
    return "" if str(found) == "127.0.0.1" else why_refused(found)


FETCHER = Fetcher(refuse=all_but_two)


async def refused(url: str, fetcher: Fetcher = FETCHER) -> str:
    with pytest.raises(InputError) as caught:
        page_of(await fetcher.fetch(url))
    return str(caught.value)


async def test_a_page_becomes_its_main_part_as_markdown(address: str) -> None:
    """The text omits navigation, scripts and image data; code and tables stay."""
    page = page_of(await FETCHER.fetch(address))
    assert page.title == "How it works"
    assert '```py\nx = 1\n  y = "ä"\n```' in page.text
    assert "| a |" in page.text
    assert "a picture" in page.text
    for gone in ("Imprint", "alert", "base64"):
        assert gone not in page.text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/latin", "Grüße"),
        ("/wrong_charset", "hello there"),
        ("/markdown", "# A page"),
        ("/json", '{"a": 1}'),
        ("/packed", "How it works"),
        ("/redirect", "How it works"),
    ],
)
async def test_other_kinds_of_text_are_read(address: str, path: str, expected: str) -> None:
    """Different charsets and types, compressed bodies and redirects are handled."""
    assert expected in page_of(await FETCHER.fetch(address + path)).text


async def test_a_pdf_is_a_document(address: str) -> None:
    """Its bytes are passed on."""
    assert page_of(await FETCHER.fetch(address + "/pdf")).pdf == b"%PDF-1.4\n/Type /Page\n"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/missing", "the server answered 404"),
        ("/binary", "it is application/octet-stream"),
        ("/image", "it is image/png"),
        ("/bomb", "larger than 10 MB"),
        ("/endless", "larger than 10 MB"),
        ("/broken_pack", "is not valid gzip"),
        ("/strange_pack", "encoded as br"),
        ("/loop", "redirected more than 5 times"),
        ("/redirect?http://127.0.0.2/", "it is this machine itself (127.0.0.2)"),
        ("/redirect?http://169.254.169.254/latest/meta-data", "a link-local or metadata address"),
        ("/redirect?http://[::ffff:10.0.0.1]/", "a private address"),
        ("/redirect?file:///etc/passwd", "cannot be fetched"),
        ("/redirect?http://me:secret@127.0.0.1/", "a user name or password"),
    ],
)
async def test_forbidden_behaviour_of_a_server_is_refused(address: str, path: str, why: str) -> None:
    """Each ends in one sentence with the reason; nothing private is requested."""
    said = await refused(address + path)
    assert why in said
    assert "secret@" not in said
    assert len(Site.asked) <= 6


async def test_a_slow_server_is_given_up(address: str) -> None:
    """The limit applies to the whole fetch, however the bytes drip."""
    assert "took longer than" in await refused(address + "/slow", Fetcher(refuse=all_but_two, time_limit_s=0.4))


async def test_a_fetch_can_be_stopped(address: str) -> None:
    """The fetch ends immediately, and the connection is closed."""
    task = asyncio.create_task(FETCHER.fetch(address + "/slow"))
    await asyncio.to_thread(Site.arrived.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/", "http://127.0.0.1/", "http://2130706433/", "http://127.1/", "http://0x7f.1/", "http://0/",
        "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/", "http://10.0.0.1/", "http://172.16.3.4/", "http://192.168.1.1/",
        "http://100.64.0.1/", "http://169.254.169.254/", "http://[fe80::1]/", "http://[fd00:ec2::254]/",
        "http://168.63.129.16/", "http://100.100.100.200/", "http://224.0.0.1/", "http://255.255.255.255/",
    ],
)  # fmt: skip
async def test_local_and_private_addresses_are_refused(url: str) -> None:
    """They are refused in every notation, before a connection is made."""
    assert "is not fetched: it is" in await refused(url, Fetcher())


@pytest.mark.parametrize(
    "url", ["", "example.org", "ftp://example.org/", "file:///etc/passwd", "http://", "http://a b/", "http://x:0/",
            "http://x:99999/", "javascript:alert(1)", "http://u:p@example.org/", "http://x/" + "a" * 5000],
)  # fmt: skip
def test_only_web_addresses_are_accepted(url: str) -> None:
    """Everything else is refused as written."""
    with pytest.raises(InputError):
        parts_of(url)


@pytest.mark.parametrize("public", ["8.8.8.8", "2001:4860:4860::8888", "64:ff9b::808:808", "1.1.1.1"])
def test_public_addresses_are_not_refused(public: str) -> None:
    """This includes IPv4 addresses that are reached through IPv6."""
    assert why_refused(ipaddress.ip_address(public)) == ""


async def test_a_name_that_changes_its_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the connected address is checked, not an earlier lookup."""
    answers = iter([("127.0.0.1",), ("127.0.0.2",)])

    async def resolved(host: str, port: int) -> tuple[Address, ...]:
        return tuple(ipaddress.ip_address(one) for one in next(answers))

    monkeypatch.setattr(fetching, "resolved", resolved)
    port = address.rpartition(":")[2]
    assert "it is this machine itself (127.0.0.2)" in await refused(f"http://rebind.example:{port}/")
    assert Site.asked == []


async def test_a_name_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused whichever of its addresses would be used."""

    async def getaddrinfo(*args: object, **options: object) -> list[object]:
        return [(socket.AF_INET, 1, 6, "", (one, 80)) for one in ("8.8.8.8", "10.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    assert "a private address (10.0.0.1)" in await refused("http://both.example/", Fetcher())
    assert addresses.is_local_name("printer")


async def test_a_proxy_is_used_and_gets_no_private_name(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configured proxy takes precedence over the system's; a proxy gets only public names."""
    through = Fetcher(proxy=address, refuse=lambda found: "" if found.is_global else why_refused(found))

    async def resolved(host: str, port: int) -> tuple[Address, ...]:
        return (ipaddress.ip_address("8.8.8.8"),) if host == "example.org" else ()

    monkeypatch.setattr(fetching, "resolved", resolved)
    assert "How it works" in page_of(await through.fetch("http://example.org/article")).text
    assert Site.asked[0][0] == "http://example.org:80/article"
    assert "no address was found for this name" in await refused("http://intranet/", through)
    assert "HTTP proxies only" in await refused("http://example.org/", Fetcher(proxy="socks5://127.0.0.1:1"))


def test_a_page_is_cached_for_an_hour(tmp_path) -> None:
    """The cache is readable only by the user; damaged files count as missing; the oldest are deleted."""
    cache, page = PageCache(tmp_path / "pages"), Fetched("https://example.org/", b"text", "text/plain")
    cache.keep("https://example.org/", page, now=1000.0)
    kept = cache.find("https://example.org/", now=1000.0 + FRESH_S - 1)
    assert kept is not None
    assert kept.page == page
    assert cache.find("https://example.org/", now=1000.0 + FRESH_S) is None
    assert cache.find("https://example.org/other", now=1000.0) is None
    [file] = (tmp_path / "pages").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(b"damaged")
    assert cache.find("https://example.org/", now=1001.0) is None
    for number in range(MAX_PAGES + 5):
        cache.keep(f"https://example.org/{number}", page, now=1000.0)
    assert len(list((tmp_path / "pages").iterdir())) == MAX_PAGES
    PageCache(None).keep("x", page)
    assert PageCache(None).find("x") is None


def test_images_that_never_end_are_read_in_linear_time() -> None:
    """Each start used to be read to the end of the page: 400 kB took 4 s, 10 MB would take an hour."""
    body = b"<pre>" + b"![a](data:" * 100_000 + b"</pre>"
    began = time.process_time()
    page = page_of(Fetched("http://x.test/", body, "text/html"))
    assert time.process_time() - began < 2
    assert page.text.count("data:") == 100_000
