---Registers the sources of the input in blink.cmp and nvim-cmp, as the recipes in the help do, unless the user has
---configured them there. This loads nothing: a plugin that is not loaded yet is checked again later.

local M = {}

local FILETYPE = "codecompanion"
local NAME = "codecompanion"
local BLINK = "codecompanion.completion.blink"

---@type table<string, true>
local done = {}

local function with_blink()
  local sources = require("blink.cmp.config").sources
  for _, provider in pairs(sources.providers) do
    if provider.module == BLINK then
      return
    end
  end
  if sources.providers[NAME] == nil then
    require("blink.cmp").add_source_provider(NAME, { name = "CodeCompanion", module = BLINK })
    sources.per_filetype[FILETYPE] = sources.per_filetype[FILETYPE] or { NAME }
  end
end

local function with_cmp()
  local cmp = require("cmp")
  for _, source in pairs(cmp.get_registered_sources()) do
    if source.name == NAME then
      return
    end
  end
  cmp.register_source(NAME, require("codecompanion.completion.cmp").new())
  if not require("cmp.config").filetypes[FILETYPE] then
    cmp.setup.filetype(FILETYPE, { sources = { { name = NAME } } })
  end
end

local PLUGINS = {
  blink = { module = "blink.cmp", register = with_blink },
  cmp = { module = "cmp", register = with_cmp },
}

---Register the sources in the plugins that are loaded, once each. `completion_provider` may exclude a plugin.
function M.register()
  local wanted = require("codecompanion.config").options.interactions.chat.opts.completion_provider
  for name, plugin in pairs(PLUGINS) do
    if not done[name] and package.loaded[plugin.module] and (wanted or name) == name then
      done[name] = true
      local ok, why = pcall(plugin.register)
      if not ok then
        require("codecompanion.system.log").append(("no completion source in %s: %s"):format(plugin.module, why))
      end
    end
  end
end

return M
