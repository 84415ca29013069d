---Implements the undo and redo keys: on a card they apply to the change of the context, in the input to the typed text.

local anchors = require("codecompanion.chat.buffer.anchors")
local buffer = require("codecompanion.chat.buffer.chat_text")
local draft = require("codecompanion.chat.wire.draft")
local say = require("codecompanion.say")
local view = require("codecompanion.chat.buffer.scroll")

---Say that there is nothing to undo and, if a tool changed a file, which keys revert that.
---@param chat CodeCompanion.Chat
---@param step -1|1
---@param place string
---@param otherwise string End of the sentence if there is no file change to revert
local function say_nothing(chat, step, place, otherwise)
  local keys = require("codecompanion.chat.state.configured_keys")
  local nothing = ("Nothing to %s %s"):format(step < 0 and "undo" or "redo", place)
  local go, revert = keys.keys("previous_change", "n")[1], keys.keys("revert_change", "n")[1]
  local find = require("codecompanion.chat.changed_files.change_marks").next_row
  local _, change = find(chat, view.cursor_row(), -1)
  if step > 0 or not change or change.reverted or not (go and revert) then
    return say.hint(nothing .. otherwise)
  end
  local how = ("%s, then %s reverts the change of %s"):format(go, revert, vim.fs.basename(change.path))
  say.hint({ nothing .. "; " .. how, how })
end

---Undo outside the input: in the context block it restores attachments; elsewhere there is nothing to undo, and a file
---change has its own key.
---@param chat CodeCompanion.Chat
---@param step -1|1
local function undo_elsewhere(chat, step)
  local history = require("codecompanion.chat.wire.edit_view")
  local in_context = view.cursor_row() < anchors.position(chat, "top")
  if in_context and step < 0 and chat.undo_kind == "detached" then
    return history.undo(chat, chat.next_undo)
  elseif in_context and step > 0 and chat.next_redo then
    return history.redo(chat, chat.next_redo)
  end
  local item = require("codecompanion.chat.buffer.row_marks").item_at(chat, view.cursor_row())
  local key = require("codecompanion.chat.state.configured_keys").keys("revert_change", "n")[1]
  if item and item.change and key then
    return say.hint(("%s %s this file change."):format(key, item.change.reverted and "reapplies" or "reverts"))
  end
  say_nothing(chat, step, "here", "; this works in the input, on summaries and on ✂ lines.")
end

---@param chat CodeCompanion.Chat
---@param step -1|1
return function(chat, step)
  local change = require("codecompanion.chat.draw.view_marks").at(chat, view.cursor_row())
  if change and require("codecompanion.chat.buffer.unread").is_unread(chat, change) then
    return
  elseif change then
    local history = require("codecompanion.chat.wire.edit_view")
    return (step < 0 and history.undo or history.redo)(chat, change.id)
  end
  local in_input = view.cursor_row() >= anchors.position(chat, "header")
  if step < 0 and chat.just_detached and chat.just_detached == buffer.input_text(chat) then
    return require("codecompanion.chat.wire.attachments").attach_again(chat)
  end
  if step < 0 and chat.just_cleared and not (in_input and draft.can_undo(chat)) then
    return require("codecompanion.chat.wire.edit_view").undo(chat)
  end
  if in_input then
    for count = 1, vim.v.count1 do
      if not draft.travel(chat, step) then
        return count == 1 and say_nothing(chat, step, "in the input", "") or nil
      end
    end
  else
    undo_elsewhere(chat, step)
  end
end
