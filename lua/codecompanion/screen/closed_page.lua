---Remembers that a page has just closed itself. A user who did not expect that presses `q` to close it, and `q` would
---stop the model in the chat below.

local M = {}

---Milliseconds after a page has closed during which a `q` is meant for it.
M.late_ms = 1500

---@type integer?
local closed_at

---Record that a page has closed itself after a decision.
function M.note()
  closed_at = vim.uv.now()
end

---Return whether a `q` is meant for the page that has just closed itself, once.
---@return boolean
function M.takes_key()
  local is_meant = closed_at ~= nil and vim.uv.now() - closed_at < M.late_ms
  closed_at = nil
  return is_meant
end

return M
