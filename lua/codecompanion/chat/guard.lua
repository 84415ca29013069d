---What has been sent is not typed into: the transcript is read-only, and mended from the log when something changes it
---all the same (`:g`, a plugin, a deletion that runs into the input). The context block and the input stay editable.

local api = vim.api
local buffer = require("codecompanion.chat.buffer")
local say = require("codecompanion.say")

local M = {}

local DESC = "CodeCompanion: the transcript is read-only"
---Keys that begin to write: they lead to the input.
local WRITE = { "i", "I", "a", "A", "o", "O", "gi", "C", "s", "S", "R" }
---Keys that put text: into the input, too.
local PUT = { "p", "P" }
---Keys that change or remove text: they say why not.
local CHANGE = { "x", "X", "D", "J", "~", ".", "r" }
---Operators: they take their motion with them, so that the `ap` of `dap` is not read as keys of its own.
local OPERATOR = { "c", "d" }

---@param text string
local function tell(text)
  say.hint(text)
end

---@param chat CodeCompanion.Chat
---@return boolean Whether the cursor is on something that was sent
local function is_inside(chat)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  return row >= buffer.position(chat, "top") and row < buffer.position(chat, "header")
end

---@param chat CodeCompanion.Chat
---@return table?
local function item_at_cursor(chat)
  return require("codecompanion.chat.draw").item_at(chat, api.nvim_win_get_cursor(0)[1] - 1)
end

---What a key says where it cannot do its work.
---@param chat CodeCompanion.Chat
local function refuse(chat)
  local item = item_at_cursor(chat)
  local key = item and item.own and require("codecompanion.chat.keymaps").keys("edit_message", "n")[1]
  tell(key and (key .. " edits and resends this message") or "The transcript is read-only; type in the input below.")
end

---@param chat CodeCompanion.Chat
---@return boolean Whether the cursor is on the header of the input: what is typed there would not be sent
local function is_on_header(chat)
  return api.nvim_win_get_cursor(0)[1] - 1 == buffer.position(chat, "header")
end

---Do in the input what a key that writes would have done here.
---@param chat CodeCompanion.Chat
---@param key string
local function write(chat, key)
  local item = item_at_cursor(chat)
  if is_inside(chat) and item and item.own and not vim.list_contains(PUT, key) then
    return refuse(chat)
  end
  require("codecompanion.chat.outgoing").cursor_to_input(chat)
  M.update(chat)
  if not vim.list_contains(PUT, key) then
    return vim.cmd.startinsert({ bang = true })
  end
  local put = vim.v.count1 .. '"' .. vim.v.register .. "p"
  local ok, problem = pcall(vim.cmd.normal, { put, bang = true })
  if not ok then
    tell((tostring(problem):gsub("^.-Vim:", "")))
  end
end

---The chat and the key of the operator that waits for its motion.
---@type { chat: CodeCompanion.Chat, key: string }?
local pending

---Called with the motion of an operator (|g@|).
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
  local leads = inside or (is_on_header(chat) and not vim.list_contains(CHANGE, key) and key ~= "d")
  if not leads then
    return api.nvim_feedkeys((vim.v.count > 0 and vim.v.count or "") .. vim.keycode(key), "in", false)
  end
  if vim.list_contains(OPERATOR, key) then
    pending = { chat = chat, key = key }
    vim.o.operatorfunc = "v:lua.require'codecompanion.chat.guard'.operate"
    return api.nvim_feedkeys("g@", "in", false)
  end
  if vim.list_contains(CHANGE, key) then
    return refuse(chat)
  end
  write(chat, key)
end

---`dd` and `cc`: the operator's own key, pressed again, is the line.
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
---@param on boolean
local function switch_keys(chat, on)
  for _, keys in ipairs({ WRITE, PUT, CHANGE, OPERATOR }) do
    for _, key in ipairs(keys) do
      local known = vim.fn.maparg(key, "n", false, true)
      local ours = known.buffer == 1 and known.desc == DESC
      if on and known.buffer ~= 1 then
        vim.keymap.set("n", key, function()
          press(chat, key)
        end, { buffer = chat.bufnr, nowait = true, silent = true, desc = DESC })
      elseif not on and ours then
        pcall(vim.keymap.del, "n", key, { buffer = chat.bufnr })
      end
    end
  end
  for _, key in ipairs(OPERATOR) do
    switch_line(chat, key, on)
  end
end

---The cursor has moved: what it stands on can be changed, or not.
---@param chat CodeCompanion.Chat
function M.update(chat)
  if api.nvim_get_current_buf() ~= chat.bufnr then
    return
  end
  local inside = is_inside(chat)
  if vim.bo[chat.bufnr].modifiable == inside then
    vim.bo[chat.bufnr].modifiable = not inside
  end
  local guarded = inside or is_on_header(chat)
  if guarded ~= (chat.guarded == true) then
    chat.guarded = guarded
    switch_keys(chat, guarded)
  end
end

---@param chat CodeCompanion.Chat
local function mend(chat)
  chat.damaged = nil
  if api.nvim_buf_is_loaded(chat.bufnr) then
    require("codecompanion.chat.redraw").redraw(chat)
  end
end

---Lines were changed by somebody else: a transcript that is touched is drawn anew from the log, the draft kept.
---@param chat CodeCompanion.Chat
---@param first integer
---@param last integer Exclusive, before the change
function M.changed(chat, first, last)
  local bounds = chat.bounds
  local touched = bounds and first < bounds[2] and last > bounds[1]
  if chat.editing or chat.damaged or not touched or chat.awaiting or chat.attached ~= "yes" then
    return
  end
  chat.damaged = true
  chat.draft.kept = chat.draft.shown or ""
  vim.schedule(function()
    mend(chat)
  end)
end

return M
