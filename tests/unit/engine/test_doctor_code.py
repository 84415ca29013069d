"""The health check's report on completion and gathered code: the problem and the remedy, without a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.adapters.embeddings import onnx_embedder
from codecompanion.engine import doctor_code
from codecompanion.engine.doctor_code import embedding_findings, team_findings
from codecompanion.engine.finding import Finding
from codecompanion.engine.runtime import Runtime
from codecompanion.model.embedding import EmbeddingSettings
from codecompanion.settings_sections import TeamSettings
from codecompanion.wire.requests import Doctor, Hello
from tests.onnx_models import write_model_folder
from tests.providers.completion.server import FillServer
from tests.providers.embeddings.server import EmbeddingServer
from tests.providers.loopback.answers import silence

CLOSED = "http://127.0.0.1:9"


async def check_up(root: Path, **settings: object) -> dict[str, list[Finding]]:
    """Return the findings of a greeted host, by name."""
    runtime = Runtime(lambda event: None)
    folders = {"data_dir": str(root), "cache_dir": str(root), "state_dir": str(root), "log_path": str(root / "log")}
    await runtime.handle(Hello(settings=settings, nvim="0.11", **folders))
    try:
        found: dict[str, list[Finding]] = {}
        for one in await runtime.handle(Doctor()):
            found.setdefault(one.name, []).append(one)
        return found
    finally:
        await runtime.aclose()


async def test_disabled_features_are_neither_checked_nor_reported(tmp_path):
    async with FillServer() as server:
        found = await check_up(tmp_path, completion={"url": server.address})
        assert {"completion", "embeddings", "team"} & set(found) == set()
        assert server.requests == []


async def test_the_completion_server_is_asked_for_one_token(tmp_path):
    """R-261: the prompt has the tokens of the family, as for every suggestion."""
    async with FillServer(["1"]) as server:
        found = await check_up(tmp_path, completion={"enabled": True, "url": server.address})
        assert [one.ok for one in found["completion"]] == [True]
        [asked] = server.requests
        assert asked.json["options"]["num_predict"] == 1
        assert asked.json["prompt"] == "<|fim_prefix|>x = <|fim_suffix|><|fim_middle|>"


@pytest.mark.parametrize(
    ("settings", "said", "advice"),
    [
        ({"url": CLOSED}, "Is the server running? Its address is completion.url", "complete-servers"),
        (
            {"endpoint": "mistral", "url": CLOSED, "api_key": "NO_SUCH_KEY"},
            "NO_SUCH_KEY is not set",
            "complete-servers",
        ),
        ({"family": "qwenn"}, "there is no family 'qwenn'", "completion ="),
        ({"endpoint": "chat"}, "uses offline, which has no model", "completion.adapter"),
        ({"endpoint": "completions", "url": CLOSED, "model": "gpt-4o"}, "text after the cursor", "completion.family"),
    ],
)
async def test_a_completion_problem_is_reported_with_a_remedy(tmp_path, settings, said, advice):
    found = await check_up(tmp_path, completion={"enabled": True, **settings})
    first = found["completion"][0]
    assert not first.ok
    assert said in first.text
    assert advice in first.advice


async def test_an_embedding_endpoint_is_asked_for_one_vector(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_embedder, "find_spec", lambda name: object())
    async with EmbeddingServer(key="sk-right") as server:
        wanted = {"url": server.url, "model": "test-embedding"}
        [refused] = (await check_up(tmp_path, context={"embedding": wanted}))["embeddings"]
        assert not refused.ok
        assert "refused" in refused.text
        assert server.texts == []
    async with EmbeddingServer() as server:
        wanted = {"url": server.url, "model": "test-embedding"}
        [found] = (await check_up(tmp_path, context={"embedding": wanted}))["embeddings"]
        assert found.ok
        assert len(server.texts) == 1


async def test_a_silent_endpoint_delays_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_embedder, "find_spec", lambda name: object())
    monkeypatch.setattr(doctor_code, "ANSWER_LIMIT_S", 0.2)
    async with EmbeddingServer(script=[silence()]) as vectors, FillServer([silence()]) as fill:
        context = {"embedding": {"url": vectors.url, "model": "test-embedding"}}
        found = await check_up(tmp_path, context=context, completion={"enabled": True, "url": fill.address})
        assert "no answer" in found["completion"][0].text
        assert "no answer" in found["embeddings"][0].text


def test_missing_parts_of_semantic_search_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is reported if the search is not enabled; if a package is missing, the install command is named."""
    assert embedding_findings(EmbeddingSettings()) == []
    (wrong,) = embedding_findings(EmbeddingSettings(onnx=str(tmp_path / "none")))
    assert (wrong.ok, wrong.advice) == (False, "Change context.embedding.onnx")
    folder = str(write_model_folder(tmp_path / "model", {"a": [1.0, 0.0]}))
    url = EmbeddingSettings(url="http://user:hunter22@localhost:11434/v1", model="nomic")
    monkeypatch.setattr(onnx_embedder, "find_spec", lambda name: None)
    for settings in (EmbeddingSettings(onnx=folder), url):
        (found,) = embedding_findings(settings)
        assert (found.ok, found.advice) == (False, "Run :CodeCompanion install semantic")
        assert "hunter22" not in found.text
    monkeypatch.setattr(onnx_embedder, "find_spec", lambda name: object())
    assert [one.ok for s in (EmbeddingSettings(onnx=folder), url) for one in embedding_findings(s)] == [True, True]
    [nameless] = embedding_findings(EmbeddingSettings(url="http://localhost:1/v1"))
    assert (nameless.ok, nameless.advice) == (False, "Change context.embedding")


@pytest.mark.parametrize(
    ("file", "command", "said"),
    [
        ("", (), "neither a file nor a command"),
        ("/no/such/team.md", (), "/no/such/team.md is not a file"),
        ("", ("no-such-program",), "no-such-program was not found"),
        ("TEAM.md", (), ""),
        ("", ("./team.sh",), ""),
        ("", ("/bin/sh",), ""),
    ],
)
def test_the_source_of_the_team_text_is_checked(file, command, said):
    """R-240; a source inside a project cannot be checked here."""
    found = team_findings(TeamSettings(enabled=True, file=file, command=command), "/nowhere")
    assert [one.ok for one in found] == ([False] if said else [])
    assert said in "".join(one.text for one in found)
    assert team_findings(TeamSettings(enabled=False, file=file, command=command), "/nowhere") == []
