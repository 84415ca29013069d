"""The machine's own settings never reach a test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.machine_state import cleaned


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_BASE_URL", "MY_GATEWAY_API_KEY", "XDG_DATA_HOME"),
        *("CODECOMPANION_CONFIG", "TIKTOKEN_CACHE_DIR", "NVIM_APPNAME", "NVIM", "VIMINIT", "MYVIMRC", "GIT_DIR"),
        *("TZ", "LC_TIME", "COLUMNS", "NO_COLOR", "PYTHONPATH", "PYTHONWARNINGS", "OLLAMA_HOST"),
        "PYTHONDONTWRITEBYTECODE",  # changes how long: without cached bytecode every child compiles 3,000 modules
    ],
)
def test_settings_that_change_an_outcome_are_removed(tmp_path, name):
    assert name not in cleaned({name: "x", "PATH": "/bin"}, tmp_path)


@pytest.mark.parametrize(
    "name", ["PATH", "NVIM_BIN", "NVIM_BINS", "HTTPS_PROXY", "SSL_CERT_FILE", "HYPOTHESIS_PROFILE"]
)
def test_settings_needed_by_the_run_stay(tmp_path, name):
    assert cleaned({name: "x"}, tmp_path)[name] == "x"


def test_home_is_not_the_developers():
    """The test run itself has a temporary home and no API keys."""
    assert "codecompanion-tests-" in str(Path.home())
    assert not [name for name in os.environ if name.endswith("_API_KEY")]


def test_a_proxy_is_not_used_for_this_machine(tmp_path):
    cleaned_variables = cleaned({"HTTP_PROXY": "http://proxy", "NO_PROXY": "example.org"}, tmp_path)
    assert cleaned_variables["NO_PROXY"] == "example.org,127.0.0.1,localhost,::1"
