---Keeps rejected file changes of tool calls until Neovim exits, so that they can be proposed again.

local say = require("codecompanion.say")

local M = {}

local MAX_KEPT = 20
---Maximum size of a change's text; larger ones are not kept.
local MAX_BYTES = 1024 * 1024

---@class CodeCompanion.Rejected
---@field call_id string
---@field title string
---@field path string
---@field before string
---@field after string

---@type CodeCompanion.Rejected[] Newest first
local kept = {}

---@param event table approval_requested event
---@param text? string The proposal as edited by the user
function M.keep(event, text)
  local after = text or event.after
  if event.path == "" or event.before == after or event.name == "delete_file" or #event.before + #after > MAX_BYTES then
    return
  end
  table.insert(
    kept,
    1,
    { call_id = event.call_id, title = event.title, path = event.path, before = event.before, after = after }
  )
  kept[MAX_KEPT + 1] = nil
end

---@return CodeCompanion.Rejected[]
function M.list()
  return kept
end

---@param call_id string
---@return CodeCompanion.Rejected?
function M.of(call_id)
  for _, one in ipairs(kept) do
    if one.call_id == call_id then
      return one
    end
  end
end

---Propose a rejected change again, in its file.
---@param one CodeCompanion.Rejected
function M.propose(one)
  if require("codecompanion.changes.in_file").propose(one.path, one.before, one.after) then
    say.hint("Proposed again in its file. Save the file yourself; the model does not see it")
  end
end

return M
