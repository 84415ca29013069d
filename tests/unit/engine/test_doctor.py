"""What the check-up says about the environment of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.engine.doctor import own_environment_finding, variables_finding
from codecompanion.tools.commands.command_environment import HiddenVariables


def test_the_check_up_names_what_commands_do_not_get_and_no_value() -> None:
    """Lesson 44: a key stands nowhere."""
    found = variables_finding(HiddenVariables(), {"PATH": "/bin", "MY_TOKEN": "pencil", "DB_PASSWORD": "pencil"})
    assert (found.ok, found.text) == (True, "do not get DB_PASSWORD, MY_TOKEN")
    assert "get all variables" in variables_finding(HiddenVariables(), {"PATH": "/bin"}).text


def test_a_host_with_keys_in_its_environment_is_told_by_name() -> None:
    """Only a process shared with other plugins has them; the advice says how it is avoided, no value is shown."""
    hidden = HiddenVariables(of_adapters=frozenset({"MINE"}), keep=("GH_*",))
    own = {"PATH": "/bin", "NVIM": "/run/nvim.1.0", "MINE": "pencil-1", "GH_TOKEN": "pencil-2"}
    finding = own_environment_finding(hidden, own)
    assert not finding.ok
    assert finding.text.startswith("GH_TOKEN, MINE can be read in the host's environment")
    assert "pencil" not in finding.text + finding.advice
    assert 'host = "private"' in finding.advice
    assert own_environment_finding(hidden, {"PATH": "/bin", "NVIM": "/run/nvim.1.0"}).ok


def test_what_search_by_meaning_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing when it is not wanted; the installation is named when a package is missing."""
    from codecompanion.adapters.embeddings import onnx_embedder
    from codecompanion.engine.doctor import embedding_findings
    from codecompanion.model.embedding import EmbeddingSettings
    from tests.onnx_models import write_model_folder

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
