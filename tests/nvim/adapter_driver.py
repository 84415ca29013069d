"""Adapters of a configuration, read from a real Neovim and decoded as in the host."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from codecompanion import settings
from codecompanion.adapters.base import AdapterSettings
from codecompanion.engine.configured import with_adapters
from codecompanion.wire.requests import Hello
from harness import Nvim

FRESH = """
for name in pairs(package.loaded) do
  if name:match("^codecompanion") then package.loaded[name] = nil end
end
_G.said = {}
vim.notify = function(text, level) table.insert(_G.said, text) end
_G.config = require("codecompanion.config")
_G.extend = require("codecompanion.adapters").extend
"""


HELLO = """
local adapters = config.adapters()
return vim.json.encode({ settings = config.for_host(), adapters = adapters.entries, proxy = adapters.proxy })
"""


class Adapters:
    """The adapters of a configuration: `entry(name)` as the host receives it, and `said` with the reported mistakes."""

    def __init__(self, nvim: Nvim, http: str) -> None:
        self.nvim = nvim
        nvim.lua(f"{FRESH} config.setup({{ adapters = {{ http = {http} }} }})")
        self.hello: dict[str, Any] = json.loads(nvim.lua(HELLO))
        environ = nvim.lua("return vim.fn.environ()")
        request = Hello(**self.hello, data_dir="", cache_dir="", log_path="", nvim="")
        self.told, self.mistakes = with_adapters(request, environ)

    def entry(self, name: str) -> AdapterSettings:
        """Return the entry, decoded as in the registry."""
        return msgspec.convert(settings.load(self.told).adapters[name], AdapterSettings, strict=False)

    @property
    def said(self) -> str:
        """Return the output of `:CodeCompanion problems`, or "" if there is none."""
        self.nvim.lua("config.take_from_host(...)", self.mistakes)
        self.nvim.settle()
        if not self.mistakes and not self.nvim.lua("return #said > 0"):
            return ""
        return "\n".join(self.nvim.lua("return require('codecompanion.config.findings').report(config.findings())"))
