---Whether an adapter sends through an official client (`transport = "sdk"`), so that what it needs is installed.

local M = {}

---@return boolean needed By an adapter that is configured, or that new chats use
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
