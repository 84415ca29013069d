---Protects sent messages from edits: the transcript is read-only, and redrawn from the log if it is changed anyway (by
---`:g`, a plugin, a deletion that extends into the input). The context block and the input stay editable.
---
---The file is longer than others because it covers every way to write, so that a missing one is easy to notice.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local say = require("codecompanion.say")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.guard")

local DESC = "CodeCompanion: the transcript is read-only"
---Keys that start inserting text; they act in the input instead.
local WRITE = { "i", "I", "a", "A", "o", "O", "gi", "gI", "gR", "<Insert>", "C", "s", "S", "R" }
---Keys that replace a selection; they also act in the input.
local WRITE_OVER = { "c", "C", "s", "S", "R", "I", "A" }
---Keys that put text; they also act in the input.
local PUT = { "p", "P" }
---Keys that change or delete text; they report why they have no effect.
local CHANGE = { "x", "X", "D", "J", "~", ".", "r" }
---Operators, which consume their motion, so that the `ap` of `dap` is not read as separate keys.
local OPERATOR = { "c", "d" }

---Keys that write in Insert mode but are not characters (|InsertCharPre|).
local EDIT = { "<CR>", "<C-j>", "<BS>", "<C-h>", "<Del>", "<C-w>", "<C-u>" }

---@param text string
local function tell(text)
  say.hint(text)
end

---@param chat CodeCompanion.Chat
---@return boolean Whether the cursor is on sent text
local function is_inside(chat)
  local row = view.cursor_row()
  return row >= anchors.position(chat, "top") and row < anchors.position(chat, "header")
end

---@param chat CodeCompanion.Chat
---@return boolean Whether the cursor is on the context block, where only whole lines can be deleted
local function is_in_context(chat)
  return view.cursor_row() < anchors.position(chat, "top")
end

---Return the key that edits the message under the cursor, or nil if it is not a user message.
---@param chat CodeCompanion.Chat
---@return string?
local function edit_key(chat)
  local item = require("codecompanion.chat.buffer.row_marks").item_at(chat, view.cursor_row())
  return item and item.own and require("codecompanion.chat.state.configured_keys").keys("edit_message", "n")[1] or nil
end

---Report that a key has no effect here, and why.
---@param chat CodeCompanion.Chat
local function refuse(chat)
  if is_in_context(chat) then
    return tell("dd removes this item from the next request. Type in the input below.")
  end
  local key = edit_key(chat)
  tell(key and (key .. " edits and resends your message") or "The transcript is read-only; type in the input below.")
end

---Explain beside the input header why Insert mode starts in the input instead: on the command line Neovim shows only
---the mode.
---@param chat CodeCompanion.Chat
---@param why string
local function explain(chat, why)
  api.nvim_buf_set_extmark(chat.bufnr, M.ns, anchors.position(chat, "header"), 0, {
    id = 1,
    virt_text = { { "you type here · " .. why, "CodeCompanionHint" } },
    virt_text_pos = "eol",
    hl_mode = "combine",
  })
  api.nvim_create_autocmd("InsertLeave", {
    buffer = chat.bufnr,
    once = true,
    callback = function()
      api.nvim_buf_clear_namespace(chat.bufnr, M.ns, 0, -1)
    end,
  })
end

---@param chat CodeCompanion.Chat
---@return boolean Whether the cursor is on the input header, where typed text would not be sent
local function is_on_header(chat)
  return view.cursor_row() == anchors.position(chat, "header")
end

---Return why typed text goes to the input, or nil if it is typed in place.
---@param chat CodeCompanion.Chat
---@return string?
local function why_not_here(chat)
  if is_in_context(chat) then
    return "dd removes an item from the context"
  elseif is_inside(chat) then
    local own = edit_key(chat)
    return own and ("%s edits and resends your message"):format(own) or "the transcript is read-only"
  end
end

---Perform the action of a writing key in the input instead. Everything typed after it is text, never keys.
---@param chat CodeCompanion.Chat
---@param key string
local function write(chat, key)
  local why = why_not_here(chat)
  view.cursor_to_input(chat)
  M.update(chat)
  if not vim.list_contains(PUT, key) then
    if why then
      explain(chat, why)
    end
    return vim.cmd.startinsert({ bang = true })
  end
  local put = vim.v.count1 .. '"' .. vim.v.register .. "p"
  local ok, problem = pcall(vim.cmd.normal, { put, bang = true })
  if not ok then
    tell((tostring(problem):gsub("^.-Vim:", "")))
  end
end

---The chat and the operator key that waits for its motion.
---@type { chat: CodeCompanion.Chat, key: string }?
local pending

---Handle the motion of an operator (|g@|).
function M.operate()
  local operator = pending
  if not operator or api.nvim_get_current_buf() ~= operator.chat.bufnr then
    return
  end
  if operator.key == "c" then
    write(operator.chat, "c")
  else
    refuse(operator.chat)
  end
end

---@param chat CodeCompanion.Chat
---@param key string
local function press(chat, key)
  local inside = is_inside(chat)
  local in_context = is_in_context(chat) and key ~= "d"
  local leads = inside or in_context or (is_on_header(chat) and not vim.list_contains(CHANGE, key) and key ~= "d")
  if not leads then
    return api.nvim_feedkeys((vim.v.count > 0 and vim.v.count or "") .. vim.keycode(key), "in", false)
  end
  if vim.list_contains(OPERATOR, key) then
    pending = { chat = chat, key = key }
    vim.o.operatorfunc = "v:lua.require'codecompanion.chat.life.transcript_guard'.operate"
    return api.nvim_feedkeys("g@", "in", false)
  end
  if vim.list_contains(CHANGE, key) then
    return refuse(chat)
  end
  write(chat, key)
end

---Handle a key that would replace a selection.
---@param chat CodeCompanion.Chat
---@param key string
local function press_on_selection(chat, key)
  vim.cmd.normal({ "\27", bang = true })
  write(chat, key)
end

---Handle a key that writes in Insert mode after arrow keys or the mouse left the input: it acts in the input.
---@param chat CodeCompanion.Chat
---@param key string
local function press_while_typing(chat, key)
  local why = why_not_here(chat)
  view.cursor_to_input(chat)
  M.update(chat)
  if why then
    explain(chat, why)
  end
  -- with our mapping removed, the user's own mapping also applies
  api.nvim_feedkeys(vim.keycode(key), chat.guarded and "in" or "im", false)
end

---Map `dd` and `cc`: a repeated operator key acts on the line.
---@param chat CodeCompanion.Chat
---@param key string
---@param on boolean
local function switch_line(chat, key, on)
  if not on then
    return pcall(vim.keymap.del, "o", key, { buffer = chat.bufnr })
  end
  vim.keymap.set("o", key, function()
    return vim.v.operator == "g@" and pending and pending.key == key and "_" or key
  end, { buffer = chat.bufnr, expr = true, nowait = true, desc = DESC })
end

---@param chat CodeCompanion.Chat
---@param mode "n"|"x"|"i"
---@param key string
---@param on boolean
---@param action fun(chat: CodeCompanion.Chat, key: string)
local function switch_key(chat, mode, key, on, action)
  local known = vim.fn.maparg(key, mode, false, true)
  local ours = known.buffer == 1 and known.desc == DESC
  if on and known.buffer ~= 1 then
    vim.keymap.set(mode, key, function()
      action(chat, key)
    end, { buffer = chat.bufnr, nowait = true, silent = true, desc = DESC })
  elseif not on and ours then
    pcall(vim.keymap.del, mode, key, { buffer = chat.bufnr })
  end
end

---@param chat CodeCompanion.Chat
---@param on boolean
local function switch_keys(chat, on)
  for _, keys in ipairs({ WRITE, PUT, CHANGE, OPERATOR }) do
    for _, key in ipairs(keys) do
      switch_key(chat, "n", key, on, press)
    end
  end
  for _, key in ipairs(WRITE_OVER) do
    switch_key(chat, "x", key, on, press_on_selection)
  end
  for _, key in ipairs(EDIT) do
    switch_key(chat, "i", key, on, press_while_typing)
  end
  for _, key in ipairs(OPERATOR) do
    switch_line(chat, key, on)
  end
end

---Handle a character about to be inserted (|InsertCharPre|) after arrow keys or the mouse left the input:
---the character goes to the input.
---@param chat CodeCompanion.Chat
function M.typed(chat)
  if chat.editing or api.nvim_get_current_buf() ~= chat.bufnr then
    return
  end
  local why = why_not_here(chat)
  if why or is_on_header(chat) then
    view.cursor_to_input(chat)
  end
  if why then
    vim.schedule(function()
      explain(chat, why)
    end)
  end
end

---Handle text pasted from the terminal: it goes to the input.
---@param chat CodeCompanion.Chat
function M.pasted(chat)
  if why_not_here(chat) or is_on_header(chat) then
    view.cursor_to_input(chat)
    M.update(chat)
  end
end

---Update whether the text at the cursor can be changed, after the cursor has moved.
---@param chat CodeCompanion.Chat
function M.update(chat)
  if api.nvim_get_current_buf() ~= chat.bufnr then
    return
  end
  local row, header = view.cursor_row(), (anchors.position(chat, "header"))
  local inside = row < header and row >= anchors.position(chat, "top")
  -- in Insert mode each key would be an error and cause a prompt: `typed` moves them to the input
  local locked = inside and not api.nvim_get_mode().mode:find("^[iR]")
  if vim.bo[chat.bufnr].modifiable == locked then
    vim.bo[chat.bufnr].modifiable = not locked
  end
  local guarded = row <= header
  if guarded ~= (chat.guarded == true) then
    chat.guarded = guarded
    switch_keys(chat, guarded)
  end
end

---@param chat CodeCompanion.Chat
local function mend(chat)
  chat.damaged = nil
  if not api.nvim_buf_is_loaded(chat.bufnr) then
    return
  end
  require("codecompanion.chat.wire.redraw_chat").redraw(chat)
  if api.nvim_get_current_buf() == chat.bufnr then
    if api.nvim_get_mode().mode:find("^i") then
      view.cursor_to_input(chat) -- the text typed next is not lost
    end
    vim.cmd.redraw() -- clear Neovim's message about deleted lines, which needs a key press
    tell("The transcript is read-only, so it was restored. Your draft is kept.")
  end
end

---Return whether a change of these rows affects the transcript. Lines inserted between the transcript and the context
---block or the input header would become part of it.
---@param chat CodeCompanion.Chat
---@param first integer
---@param last integer Exclusive, before the change
---@return boolean
local function touches(chat, first, last)
  local bounds = chat.bounds
  if not bounds then
    return false
  elseif first == last then
    return first >= bounds[1] and first <= bounds[2]
  end
  return first < bounds[2] and last > bounds[1]
end

---Handle a foreign change of lines: an affected transcript is redrawn from the log, and the draft is kept.
---@param chat CodeCompanion.Chat
---@param first integer
---@param last integer Exclusive, before the change
function M.changed(chat, first, last)
  if chat.editing or chat.damaged or chat.awaiting or not touches(chat, first, last) then
    return
  end
  chat.damaged = true
  chat.draft.kept = chat.draft.shown or ""
  vim.schedule(function()
    mend(chat)
  end)
end

return M
