---The public functions of completion at the cursor, part of `require("codecompanion")`. Mappings and status lines may
---call them before completion is loaded; then they return an empty result.

local M = {}

---Accept the suggestion at the cursor, or a part of it. If there is none, a mapping can fall back to another action.
---@param part? "all"|"line"|"word" "all" by default
---@return boolean accepted Whether there was a suggestion
function M.accept_completion(part)
  require("codecompanion.values.arguments").optional("part", part, "string")
  local inline = package.loaded["codecompanion.inline"]
  return inline ~= nil and inline.accept(part)
end

---Return whether a suggestion is shown at the cursor.
---@return boolean
function M.has_completion()
  local inline = package.loaded["codecompanion.inline"]
  return inline ~= nil and inline.is_shown()
end

---Return the state of completion for a status line; may be empty.
---@return string
function M.completion_statusline()
  local status = package.loaded["codecompanion.inline.completion_status"]
  return status and status.component() or ""
end

return M
