---The user's draft: undone and redone on its own; saved by `wire/draft_saving.lua`.
---
---Machine edits drop the buffer's own undo history (line numbers in it would be wrong), therefore the draft keeps its
---own: one step per insert or per normal-mode change, as Vim does it.

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
---@field edits (CodeCompanion.Edit|false)[] Beside each step: the message it is an edit of
---@field at integer Index of the step that stands in the buffer
---@field saved? string What the host has
---@field refused? string Why it could not be stored
---@field kept? string What the buffer had when it was unloaded
---@field shown? string What was drawn last
---@field left? CodeCompanion.PlaceInInput Where the cursor was in the text that was taken last
---@field timer? uv.uv_timer_t

---@param text string
---@return boolean
local function is_blank(text)
  return not text:find("%S")
end

---@param chat CodeCompanion.Chat
---@param text string
---@param edit? CodeCompanion.Edit The step begins an edit; otherwise it goes on with what stood there, if it has words
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

---The message that the input is an edit of, nil for a new message.
---@param chat CodeCompanion.Chat
---@return CodeCompanion.Edit?
function M.editing(chat)
  local edit = chat.draft.edits[chat.draft.at]
  return edit and not is_blank(buffer.input_text(chat)) and edit or nil
end

---The first row of what leaves with the message that is edited.
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

---Say that the input is an edit, and dim what is not in the branch it will make.
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
  local words = "editing · sends a branch" .. (undo and (" · %s cancels"):format(undo) or "")
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

---React to a change of the input, which is where it should be.
---@param chat CodeCompanion.Chat
---@param text string What stands there
---@param typing boolean
local function react(chat, text, typing)
  if not typing or (is_blank(text) and chat.draft.edits[chat.draft.at]) then
    push(chat, text) -- an emptied input is no edit any more, also within one insert
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

---React to a change of the buffer; `typing` while in insert mode.
---@param chat CodeCompanion.Chat
---@param typing boolean
function M.changed(chat, typing)
  if not chat.damaged then -- such a buffer is about to be drawn again, with the draft as it was
    buffer.ensure_input(chat)
    react(chat, buffer.input_text(chat), typing)
  end
end

---The buffer goes: keep what stands in it, unless it was damaged and the draft is kept already.
---@param chat CodeCompanion.Chat
function M.keep(chat)
  if not chat.damaged then
    chat.draft.kept = buffer.input_text(chat)
  end
  saving.save(chat)
end

---The buffer was emptied and has the draft again.
---@param chat CodeCompanion.Chat
function M.redrawn(chat)
  chat.draft.shown, chat.draft.shown_edit = nil, nil
  push(chat, buffer.input_text(chat))
  M.changed(chat, true)
end

---The messages are drawn again: those that leave with an edit are dimmed again.
---@param chat CodeCompanion.Chat
function M.messages_drawn(chat)
  chat.draft.shown_edit = nil
  show_edit(chat)
end

---Put `text` into the input as one step that can be undone.
---@param chat CodeCompanion.Chat
---@param text string
function M.set(chat, text)
  push(chat, buffer.input_text(chat))
  buffer.set_input(chat, text)
  push(chat, text)
  react(chat, text, true)
end

---Take a message that was sent back into the input, as one step that can be undone.
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

---Put back what stood in the input before the edit.
---@param chat CodeCompanion.Chat
---@param edit CodeCompanion.Edit
function M.end_edit(chat, edit)
  push(chat, buffer.input_text(chat))
  buffer.set_input(chat, edit.before)
  push(chat, edit.before)
  chat.draft.edits[chat.draft.at] = false
  M.changed(chat, true)
end

---Put text in front of what stands in the input, which is something else: a message comes back, say. A cursor that
---waits in the empty input goes back to where it was in that message, else to its end.
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

---The text is on its way: the input begins empty, and no undo brings back what could then be sent twice.
---@param chat CodeCompanion.Chat
function M.take(chat)
  chat.draft.left = view.place_in_input(chat, buffer.input_text(chat))
  M.set(chat, "")
  chat.draft.steps, chat.draft.edits, chat.draft.at = { "" }, { false }, 1
end

---@param before string
---@param after string
---@return integer row, integer col Of the first difference in `after`
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

---Whether something was typed since the draft was empty last.
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
