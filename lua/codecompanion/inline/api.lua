---The public functions of completion at the cursor, part of `require("codecompanion")`. Called by mappings and status
---lines before anything else of it is loaded; then there is nothing to say.

local M = {}

---Take a suggestion at the cursor over, or a part of it; for mappings that do something else when there is none.
---@param part? "all"|"line"|"word" "all" when not given
---@return boolean accepted There was one
function M.accept_completion(part)
  require("codecompanion.values.arguments").optional("part", part, "string")
  local inline = package.loaded["codecompanion.inline"]
  return inline ~= nil and inline.accept(part)
end

---Whether a suggestion is shown at the cursor.
---@return boolean
function M.has_completion()
  local inline = package.loaded["codecompanion.inline"]
  return inline ~= nil and inline.is_shown()
end

---How completion at the cursor is doing, for a status line; empty when there is nothing to say.
---@return string
function M.completion_statusline()
  local status = package.loaded["codecompanion.inline.completion_status"]
  return status and status.component() or ""
end

return M
