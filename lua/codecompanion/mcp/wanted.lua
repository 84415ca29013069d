---Whether there are MCP servers to start, so that what they need is installed.

local M = {}

---@return boolean
function M.are_configured()
  local mcp = require("codecompanion.config").options.mcp or {}
  for _, server in pairs(mcp.servers or {}) do
    if server and server.enabled ~= false then
      return mcp.enabled ~= false
    end
  end
  return false
end

return M
