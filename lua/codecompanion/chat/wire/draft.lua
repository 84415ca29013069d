---Manages the user's draft, with its own undo and redo; `wire/draft_saving.lua` saves it.
---
---Machine edits drop the buffer's undo history, whose line numbers would be wrong, so the draft has its own: one step
---per insert or per Normal mode change, as in Vim.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local buffer = require("codecompanion.chat.buffer.chat_text")
local hint = require("codecompanion.chat.buffer.input_hint")
local keys = require("codecompanion.chat.state.configured_keys")
local paint = require("codecompanion.chat.buffer.markdown_colours")
local saving = require("codecompanion.chat.wire.draft_saving")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

M.BETWEEN = saving.BETWEEN
M.save = saving.save
M.sending = saving.sending
M.close = saving.close
M.take_stored = saving.take_stored

local MAX_STEPS = 200
local EDITING, LEAVING = 2, 3

---@class CodeCompanion.Draft
---@field steps string[] Texts, oldest first
---@field edits (CodeCompanion.Edit|false)[] For each step, the message that it edits
---@field at integer Index of the step in the buffer
---@field saved? string The text that the host has
---@field refused? string Why it could not be stored
---@field kept? string The text when the buffer was unloaded
---@field shown? string The text as last drawn
---@field left? CodeCompanion.PlaceInInput The cursor's position in the last sent text
---@field timer? uv.uv_timer_t

---@param text string
---@return boolean
local function is_blank(text)
  return not text:find("%S")
end

---@param chat CodeCompanion.Chat
---@param text string
---@param edit? CodeCompanion.Edit Starts an edit; without it the step continues the previous edit, unless the text is
---blank
local function push(chat, text, edit)
  local draft = chat.draft
  edit = edit or not is_blank(text) and draft.edits[draft.at] or nil
  if draft.steps[draft.at] == text then
    draft.edits[draft.at] = edit or false
    return
  end
  for index = #draft.steps, draft.at + 1, -1 do
    draft.steps[index], draft.edits[index] = nil, nil
  end
  draft.steps[#draft.steps + 1] = text
  draft.edits[#draft.steps] = edit or false
  if #draft.steps > MAX_STEPS then
    table.remove(draft.steps, 1)
    table.remove(draft.edits, 1)
  end
  draft.at = #draft.steps
end

---Return the message that the input edits, or nil for a new message.
---@param chat CodeCompanion.Chat
---@return CodeCompanion.Edit?
function M.editing(chat)
  local edit = chat.draft.edits[chat.draft.at]
  return edit and not is_blank(buffer.input_text(chat)) and edit or nil
end

---Return the first row of the messages that the branch will not contain.
---@param chat CodeCompanion.Chat
---@param edit CodeCompanion.Edit
---@return integer?
local function first_row(chat, edit)
  for _, item in pairs(chat.items) do
    if item.message_id == edit.message_id then
      return (require("codecompanion.chat.buffer.row_marks").item_rows(chat, item))
    end
  end
end

---Show that the input is an edit, and dim the messages that the branch will not contain.
---@param chat CodeCompanion.Chat
local function show_edit(chat)
  local edit = M.editing(chat)
  if edit == chat.draft.shown_edit then
    return
  end
  chat.draft.shown_edit = edit
  api.nvim_buf_del_extmark(chat.bufnr, hint.ns, EDITING)
  api.nvim_buf_del_extmark(chat.bufnr, hint.ns, LEAVING)
  if not edit then
    return
  end
  local undo = keys.keys("undo", "n")[1]
  local header = anchors.position(chat, "header")
  local words = "editing · sends as a new branch" .. (undo and (" · %s cancels"):format(undo) or "")
  api.nvim_buf_set_extmark(chat.bufnr, hint.ns, header, 0, {
    id = EDITING,
    virt_text = { { words, "CodeCompanionHint" } },
    virt_text_pos = "eol",
    hl_mode = "combine",
  })
  local first = first_row(chat, edit)
  if first and first < header then
    api.nvim_buf_set_extmark(chat.bufnr, hint.ns, first, 0, {
      id = LEAVING,
      end_row = header,
      hl_group = "CodeCompanionUndone",
      priority = 120,
    })
  end
end

---Handle a change of the input, whose header is intact.
---@param chat CodeCompanion.Chat
---@param text string The new text
---@param typing boolean
local function react(chat, text, typing)
  if not typing or (is_blank(text) and chat.draft.edits[chat.draft.at]) then
    push(chat, text) -- an emptied input is no longer an edit, even within one insert
  end
  show_edit(chat)
  if text ~= chat.draft.shown then
    chat.draft.shown = text
    hint.draw(chat)
    paint.input_soon(chat)
    if text:find("#{buffers", 1, true) then
      require("codecompanion.editor_context.texts_of_buffers").read_soon()
    end
    if text ~= chat.draft.saved then
      saving.save_soon(chat)
    end
  end
end

---Handle a change of the buffer; `typing` means Insert mode.
---@param chat CodeCompanion.Chat
---@param typing boolean
function M.changed(chat, typing)
  if not chat.damaged then -- otherwise the buffer is about to be redrawn, with the previous draft
    buffer.ensure_input(chat)
    react(chat, buffer.input_text(chat), typing)
  end
end

---Save the draft of a buffer that is unloaded, unless the buffer was damaged and the draft is already saved.
---@param chat CodeCompanion.Chat
function M.keep(chat)
  if not chat.damaged then
    chat.draft.kept = buffer.input_text(chat)
  end
  saving.save(chat)
end

---Restore the state after the buffer was emptied and the draft inserted again.
---@param chat CodeCompanion.Chat
function M.redrawn(chat)
  chat.draft.shown, chat.draft.shown_edit = nil, nil
  push(chat, buffer.input_text(chat))
  M.changed(chat, true)
end

---Dim the messages that the edit's branch will not contain, after a redraw.
---@param chat CodeCompanion.Chat
function M.messages_drawn(chat)
  chat.draft.shown_edit = nil
  show_edit(chat)
end

---Put `text` into the input as one undo step.
---@param chat CodeCompanion.Chat
---@param text string
function M.set(chat, text)
  push(chat, buffer.input_text(chat))
  buffer.set_input(chat, text)
  push(chat, text)
  react(chat, text, true)
end

---Put a sent message into the input for editing, as one undo step.
---@param chat CodeCompanion.Chat
---@param edit { message_id: string, fork: string }
---@param text string
function M.edit(chat, edit, text)
  local before = buffer.input_text(chat)
  push(chat, before)
  buffer.set_input(chat, text)
  push(chat, text, vim.tbl_extend("force", edit, { before = before }))
  M.changed(chat, true)
end

---Restore the text of the input from before the edit.
---@param chat CodeCompanion.Chat
---@param edit CodeCompanion.Edit
function M.end_edit(chat, edit)
  push(chat, buffer.input_text(chat))
  buffer.set_input(chat, edit.before)
  push(chat, edit.before)
  chat.draft.edits[chat.draft.at] = false
  M.changed(chat, true)
end

---Put text before other text in the input, for example a message that was not sent. If the input is empty, a cursor
---waiting there returns to its position in that message, or goes to the end.
---@param chat CodeCompanion.Chat
---@param text string
function M.prepend(chat, text)
  local present = buffer.input_text(chat)
  if present == "" then
    local waiting, left = view.in_input(chat), chat.draft.left
    M.set(chat, text)
    return view.back_in_input(chat, waiting, left and left.text == text and left or nil)
  end
  push(chat, present)
  buffer.prepend_input(chat, text .. saving.BETWEEN)
  push(chat, buffer.input_text(chat))
  M.changed(chat, true)
end

---Clear the input for a message being sent; undo does not restore the text, which could then be sent twice.
---@param chat CodeCompanion.Chat
function M.take(chat)
  chat.draft.left = view.place_in_input(chat, buffer.input_text(chat))
  M.set(chat, "")
  chat.draft.steps, chat.draft.edits, chat.draft.at = { "" }, { false }, 1
end

---@param before string
---@param after string
---@return integer row, integer col Position of the first difference in `after`
local function first_difference(before, after)
  local length = math.min(#before, #after)
  local same = 0
  while same < length and before:byte(same + 1) == after:byte(same + 1) do
    same = same + 1
  end
  local head = after:sub(1, same)
  local _, row = head:gsub("\n", "")
  return row, #head:match("[^\n]*$")
end

---Return whether text was typed since the draft was last empty.
---@param chat CodeCompanion.Chat
---@return boolean
function M.can_undo(chat)
  return buffer.input_text(chat) ~= ""
end

---Undo (`step` -1) or redo (1) in the draft.
---@param chat CodeCompanion.Chat
---@param step -1|1
---@return boolean moved
function M.travel(chat, step)
  local draft = chat.draft
  push(chat, buffer.input_text(chat))
  local text = draft.steps[draft.at + step]
  if not text then
    return false
  end
  local before = draft.steps[draft.at]
  draft.at = draft.at + step
  buffer.set_input(chat, text)
  M.changed(chat, true)
  if api.nvim_get_current_buf() == chat.bufnr then
    local row, col = first_difference(before, text)
    pcall(api.nvim_win_set_cursor, 0, { anchors.position(chat, "input") + row + 1, col })
  end
  return true
end

return M
