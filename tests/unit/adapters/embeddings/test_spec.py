"""Parsing `--embed SPEC`, and its error messages (R-239)."""

from __future__ import annotations

import pytest

from codecompanion.adapters.embeddings.make import make_embedder
from codecompanion.adapters.embeddings.spec import parse_spec
from codecompanion.errors import InputError, NotConfigured
from codecompanion.model.embedding import EmbeddingSettings


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ("url=http://localhost:11434/v1,model=nomic", {"url": "http://localhost:11434/v1", "model": "nomic"}),
        ("url=https://a.test,model=m,key=MY_KEY", {"url": "https://a.test", "model": "m", "key": "MY_KEY"}),
        ("model=m,url=https://a.test?v=1,2", {"url": "https://a.test?v=1,2", "model": "m"}),
        ("url=https://a.test,model=m,key=cmd:pass show a,b", {"key": "cmd:pass show a,b"}),
        ("url=https://a.test,model=m,dimensions=256", {"dimensions": 256}),
        ("url=https://a.test,model=m,query_prefix=find: ,document_prefix=", {"query_prefix": "find: "}),
        ("onnx=/models/a,b", {"onnx": "/models/a,b"}),
    ],
)
def test_a_spec_names_an_endpoint_or_a_folder(spec: str, fields: dict[str, object]) -> None:
    settings = parse_spec(spec)
    assert {name: getattr(settings, name) for name in fields} == fields
    assert settings.is_set


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "expected url=…,model=…[,key=ENV] or onnx=FOLDER"),
        ("nomic", "expected url=…,model=…[,key=ENV] or onnx=FOLDER"),
        ("url=http://a.test,model=m,colour=red", "model: "),
        ("url=http://a.test,url=http://b.test", "expected url="),
        ("url=http://a.test", "model: expected the name of an embedding model"),
        ("url=localhost:11434,model=m", "url: expected http://… or https://…"),
        ("model=m", "url: expected url=…"),
        ("url=http://a.test,model=m,onnx=f", "set either `url` or `onnx`, not both"),
        ("onnx=f,key=MY_KEY", "cannot be combined with `model`, `key` or `dimensions`"),
        ("url=http://a.test,model=m,dimensions=many", "expected a number from 1 to 65536"),
        ("url=http://a.test,model=m,dimensions=0", "expected a number from 1 to 65536"),
    ],
)
def test_an_invalid_spec_is_refused_with_the_expected_form(spec: str, said: str) -> None:
    if spec.endswith("colour=red"):
        # Text after a comma without a known name belongs to the value before it.
        assert parse_spec(spec).model == "m,colour=red"
        return
    with pytest.raises(InputError) as caught:
        parse_spec(spec)
    assert said in str(caught.value)
    assert str(caught.value).startswith("--embed ")


@pytest.mark.parametrize("key", ["sk-proj-aBcD1234567890", "f3a9c1d2e4b5a697887766554433", "hf_abcdefghijklmnop123"])
def test_a_key_in_place_of_its_name_is_never_shown(key: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec(f"url=http://user:hunter22@a.test,model=m,key={key}")
    assert key not in str(caught.value)
    assert "hunter22" not in str(caught.value)
    assert "expected an environment variable" in str(caught.value)


def test_settings_in_the_configuration_are_validated_alike() -> None:
    with pytest.raises(NotConfigured, match=r"context\.embedding\.model: expected the name"):
        make_embedder(EmbeddingSettings(url="http://a.test"), lambda settings: "")
