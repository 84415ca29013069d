---Builds the table for setup() out of Lua texts; loaded into the Neovim of the option tests as `_G.options_test`.

local M = {}

---@param base string A Lua table as text
---@param path string "" = only the base
---@param value string A Lua expression
---@return table
function M.given(base, path, value)
  local options = assert(loadstring("return " .. base))()
  if path == "" then
    return options
  end
  local at, keys = options, vim.split(path, ".", { plain = true })
  for i = 1, #keys - 1 do
    if type(at[keys[i]]) ~= "table" then
      at[keys[i]] = {}
    end
    at = at[keys[i]]
  end
  at[keys[#keys]] = assert(loadstring("return " .. value))()
  return options
end

---@return string[] problems Of the configuration
function M.setup(base, path, value)
  local config = require("codecompanion.config")
  require("codecompanion").setup(M.given(base, path, value))
  local found = config.findings()
  return vim.list_extend(vim.list_extend({}, found.problems), found.foreign)
end

---@return string greeting `hello` as JSON
function M.greeting()
  return vim.json.encode((require("codecompanion.host.hello_request").prepare()))
end

return M
