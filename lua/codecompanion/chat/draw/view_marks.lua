---Updates the buffer to the state of the view as reported by the host (`view_marks`).

local api = vim.api
local card = require("codecompanion.chat.draw.card")
local fit = require("codecompanion.text.fit")
local folds = require("codecompanion.chat.buffer.folds")
local keys = require("codecompanion.chat.state.configured_keys")
local gone = require("codecompanion.chat.state.removed_messages")
local marks = require("codecompanion.chat.buffer.row_marks")
local replaced = require("codecompanion.chat.draw.replaced_answers")
local runs = require("codecompanion.chat.draw.fold_removed_messages")
local tool_call = require("codecompanion.chat.draw.tool_call")
local tools = require("codecompanion.chat.draw.tool_blocks")

local M = {}

M.keys_ns = api.nvim_create_namespace("codecompanion.chat.cleared_keys")
local ID, MIN_GAP = 1, 2

---Return the text if it fits at the right edge of a line.
---@param text string
---@param room integer Cells beside the text of the line
---@return string?
local function fitting(text, room)
  return text ~= "" and MIN_GAP + api.nvim_strwidth(text) <= room and text or nil
end

---Return whether a call has changed a file, and a key reverts that now.
---@param chat CodeCompanion.Chat
---@param item? table
---@return boolean
local function can_revert(chat, item)
  return chat.state == "idle" and item ~= nil and item.change ~= nil and not item.change.reverted
end

---Return the keys of a result or of a file change.
---@param chat CodeCompanion.Chat
---@param item table
---@return string
local function keys_of(chat, item)
  if item.cleared then
    return tool_call.cleared_keys(item.cleared)
  end
  local revert = can_revert(chat, item) and keys.keys("revert_change", "n")[1]
  return revert and revert .. " revert" or ""
end

---Return the row under the cursor of the chat's window, and the keys to show there.
---@param chat CodeCompanion.Chat
---@return integer? row
---@return string? text
local function find(chat)
  local win = api.nvim_get_current_win()
  if api.nvim_win_get_buf(win) ~= chat.bufnr then
    return nil
  end
  local line = api.nvim_win_get_cursor(win)[1]
  local closed_at = vim.fn.foldclosed(line)
  local row = (closed_at > 0 and closed_at or line) - 1
  if not api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1]:find("^▾ ") then
    return nil -- most rows: no need to look up marks
  end
  local item = marks.item_at(chat, row)
  if not item or marks.item_rows(chat, item) ~= row then
    return nil
  end
  local room = fit.room(win)
  local fold = closed_at > 0 and folds.at(chat, row) or nil
  local width = fold and fit.width(fold.text(room)) or vim.fn.virtcol({ row + 1, "$" }) - 1
  return row, fitting(keys_of(chat, item), room - width)
end

---Return the row of the last file change since the last message, and the keys that go there and revert it.
---@param chat CodeCompanion.Chat
---@return integer? row
---@return string? text
local function newest_edit(chat)
  local item = chat.newest_edit and chat.calls[chat.newest_edit]
  local go, revert = keys.keys("previous_change", "n")[1], keys.keys("revert_change", "n")[1]
  if not can_revert(chat, item) or item.cleared or not (go and revert) then
    return nil
  end
  local row, room = marks.item_rows(chat, item), fit.narrowest(chat)
  return row,
    row and fitting(("%s go there · %s revert"):format(go, revert), room - fit.width(tool_call.line(item, room)))
end

---Show keys at the right edge of a line, with one mark that is moved: those of a cleared result or a file change while
---the cursor is on it, otherwise how to revert the newest change.
---@param chat CodeCompanion.Chat
---@param is_leaving? boolean The cursor is leaving the window
function M.show_keys(chat, is_leaving)
  local row, text
  if not is_leaving then
    row, text = find(chat)
  end
  if not text then
    row, text = newest_edit(chat)
  end
  if not text then
    if chat.keys_shown then
      api.nvim_buf_del_extmark(chat.bufnr, M.keys_ns, ID)
      chat.keys_shown = nil
    end
    return
  end
  chat.keys_shown = true
  api.nvim_buf_set_extmark(chat.bufnr, M.keys_ns, row --[[@as integer]], 0, {
    id = ID,
    virt_text = { { text, "CodeCompanionHint" } },
    virt_text_pos = "right_align",
    hl_mode = "combine",
    invalidate = true,
    undo_restore = false,
  })
end

---Update the buffer to the reported view.
---@param chat CodeCompanion.Chat
---@param event table view_marks event
function M.update(chat, event)
  local undone, cleared, pinned, lost = {}, {}, {}, {}
  for _, id in ipairs(event.undone) do
    undone[id] = true
  end
  for _, id in ipairs(event.cleared) do
    cleared[id] = (event.cut or {})[id] or true
  end
  for _, id in ipairs(event.pinned) do
    pinned[id] = true
  end
  for _, id in ipairs(event.lost or {}) do
    lost[id] = true
  end
  chat.next_undo = event.next_undo ~= "" and event.next_undo or nil
  chat.next_redo = event.next_redo ~= "" and event.next_redo or nil
  chat.undo_kind, chat.cleared, chat.lost, chat.marked = event.undo_kind, cleared, lost, true
  local moved = gone.set(chat, event.gone or {})
  for id, change in pairs(chat.changes) do
    local is_undone = undone[id] == true
    if change.undone ~= is_undone then
      change.undone, moved = is_undone, true
      if change.kind == "compacted" then
        card.refold(chat, change)
      end
    end
    card.show(chat, change)
  end
  replaced.update(chat, event.replaced or {})
  if moved then
    runs.refresh(chat)
  end
  card.supersede(chat)
  for _, item in pairs(chat.items) do
    if item.message_id and not item.reasoning then
      if item.call_id or item.along then
        tools.set_cleared(chat, item, cleared[item.message_id] or false)
      end
      if item.along then
        tools.set_lost(chat, item, lost[item.message_id] == true)
      end
      local is_pinned = pinned[item.message_id] == true
      if (item.pinned == true) ~= is_pinned then
        marks.pin(chat, item, is_pinned)
      end
    end
  end
  M.show_keys(chat)
  vim.cmd.redraw({ bang = false }) -- closed folds compute their lines from the items
end

---Return the change shown at a row: a card, or the line of an edit below the row.
---@param chat CodeCompanion.Chat
---@param row integer 0-based
---@return (CodeCompanion.Change|CodeCompanion.Replaced)?
function M.at(chat, row)
  local item = marks.item_at(chat, row)
  local id = item and (item.compaction_id or item.cleared_by)
  if id and id ~= "" then
    return chat.changes[id]
  end
  local answer = replaced.at(chat, row)
  if answer then
    return answer
  end
  local edits = card.edits_below(chat, row)
  for _, change in ipairs(edits) do
    if change.id == chat.next_undo or change.id == chat.next_redo then
      return change -- of several, the one that a key can act on
    end
  end
  return edits[1]
end

return M
