---The built-in adapters by name, complete: `python/codecompanion/builtin_adapters.json`. The host resolves the user's
---entries against the same file.

---@class CodeCompanion.BuiltinAdapter
---@field kind "openai"|"openai_compatible"|"openai_responses"|"anthropic"|"copilot"|"chatgpt"|"offline"
---@field formatted_name string What headers and pickers show
---@field base_url string
---@field key string Where the key is: ENV_NAME or "" for none
---@field key_page? string Where one gets a key
---@field documented_at? string The page its entry was written from
---@field model string "" = the first the endpoint lists
---@field about string For the help file
---@field transport "httpx2"|"sdk"
---@field client string The cloud whose official client signs the requests, "" for none
---@field address_variable? string Names the address, where it is set
---@field entry? CodeCompanion.AdapterEntry A first layer below the user's, for what depends on the environment

local environment = require("codecompanion.system.python_environment")
local path = environment.root() .. "/python/codecompanion/builtin_adapters.json"
local text = environment.read(path) or error(path .. " cannot be read")
local data = vim.json.decode(text)

---@type table<string, CodeCompanion.BuiltinAdapter>
return vim.tbl_map(function(adapter)
  return vim.tbl_extend("force", data.base, adapter)
end, data.adapters)
