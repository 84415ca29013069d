---What the tools of a turn changed, in one line at its end, when that is more than one file.

local keys = require("codecompanion.chat.state.keys")
local say = require("codecompanion.say")

local M = {}

---@param chat CodeCompanion.Chat
---@param event table tool_finished
function M.take(chat, event)
  local change = event.change
  if change and not change.reverted then
    chat.turn_changes = chat.turn_changes or {}
    chat.turn_changes[#chat.turn_changes + 1] = change
    chat.has_changed_files = true
  end
end

---Tell it at the end of the turn.
---@param chat CodeCompanion.Chat
function M.tell(chat)
  local changes = chat.turn_changes or {}
  chat.turn_changes = nil
  local files, count, added, removed = {}, 0, 0, 0
  for _, change in ipairs(changes) do
    if not files[change.path] then
      files[change.path], count = true, count + 1
    end
    added, removed = added + change.added, removed + change.removed
  end
  if count < 2 then
    return
  end
  local lines = require("codecompanion.files.counts").text({ added = added, removed = removed })
  local key = keys.keys("open_file", "n")
  local how = (key[#key] or ":CodeCompanionChanges") .. " review"
  say.chat(chat, ("▸ %d files changed%s · %s"):format(count, lines ~= "" and (" · " .. lines) or "", how))
end

return M
