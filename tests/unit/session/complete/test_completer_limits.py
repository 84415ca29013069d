"""Edge cases of completion: cancellation, number of suggestions, number of cached projects (R-261)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing as closing

from codecompanion.session.complete.projects import Projects
from tests.providers.completion.server import FillServer
from tests.providers.loopback.answers import silence
from tests.unit.session.complete import test_projects
from tests.unit.session.complete.conftest import code
from tests.unit.session.complete.test_projects import FakeIndexes, folder

now, make = test_projects.now, test_projects.make


async def test_a_request_survives_a_cancel_with_another_id(make_completer):
    async with FillServer([silence()]) as server, closing(make_completer(url=server.address)) as completer:
        running = asyncio.ensure_future(completer.complete(code(id=7)))
        await server.wait_until(lambda: len(server.requests) == 1)
        completer.cancel(6)
        assert completer._running is not None
        completer.cancel(7)
        assert (await running).items == ()


async def test_at_most_five_suggestions_are_requested(make_completer):
    async with FillServer([f"f{n}()" for n in range(9)]) as server:
        async with closing(make_completer(url=server.address)) as completer:
            found = await completer.complete(code(count=50))
        assert [item.text for item in found.items] == [f"f{n}()" for n in range(5)]
        assert len(server.requests) == 5


async def test_the_text_of_three_projects_stays_cached(make, tmp_path):
    roots = [folder(tmp_path / name, ".git") for name in "abcd"]
    projects: Projects = make(FakeIndexes())
    async with closing(projects):
        for root in roots:
            assert await projects.find("a.py", str(root)) is not None
        assert list(projects._readers) == roots[1:]
