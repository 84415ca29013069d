---Reads the built-in adapters, by name, from `python/codecompanion/builtin_adapters.json`. The host resolves the user's
---entries against the same file.

---@class CodeCompanion.BuiltinAdapter
---@field kind "openai"|"openai_compatible"|"openai_responses"|"anthropic"|"copilot"|"chatgpt"|"offline"
---@field formatted_name string Name shown in headers and pickers
---@field base_url string
---@field key string Source of the key: ENV_NAME, or "" for none
---@field key_page? string Page where users get a key
---@field documented_at? string Page that documents the API
---@field model string "" = the first model the endpoint lists
---@field about string Description for the help file
---@field transport "httpx2"|"sdk"
---@field start_command string Command that starts the server in a shell, "" if unknown
---@field client string Cloud whose official client signs the requests, or "" for none
---@field address_variable? string Environment variable that overrides the address
---@field entry? CodeCompanion.AdapterEntry Layer below the user's entry, for settings that depend on the environment

local environment = require("codecompanion.system.python_environment")
local path = environment.root() .. "/python/codecompanion/builtin_adapters.json"
local text = environment.read(path) or error(path .. " cannot be read")
local data = vim.json.decode(text)

---@type table<string, CodeCompanion.BuiltinAdapter>
return vim.tbl_map(function(adapter)
  return vim.tbl_extend("force", data.base, adapter)
end, data.adapters)
