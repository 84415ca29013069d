---Checks whether an adapter uses an official client (`transport = "sdk"`), whose packages must then be installed.

local M = {}

---@return boolean needed Whether a configured adapter, or the adapter of new chats, uses an official client
function M.are_needed()
  local config = require("codecompanion.config")
  local adapters, http = require("codecompanion.adapters"), config.options.adapters.http
  local names = vim.tbl_keys(vim.tbl_get(config.user or {}, "adapters", "http") or {})
  names[#names + 1] = (require("codecompanion.adapters.default_adapter").reference(config.options))
  return vim.iter(names):any(function(name)
    if name == "opts" or name == "extend" then
      return false
    end
    local ok, resolved = pcall(adapters.resolve, name, http)
    return ok and resolved.settings ~= nil and resolved.settings.transport == "sdk"
  end)
end

return M
