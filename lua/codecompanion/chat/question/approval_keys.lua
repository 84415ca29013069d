---Maps the keys of an approval in Normal mode while a question is open. A key answers the only open question from
---anywhere in the chat, even the input; if there are several, the cursor must be on the block. A key with a count does
---not answer, because the count belongs to a motion. A key with another meaning in the chat works only on the block.
---If no question is open, a key that has no other meaning here says so.

local api = vim.api
local changes = require("codecompanion.changes.decision_keys")
local marks = require("codecompanion.chat.buffer.row_marks")
local questions = require("codecompanion.chat.state.questions")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local status = require("codecompanion.chat.state.chat_status")

local M = {}

---@class CodeCompanion.QuestionActs
---@field act fun(chat: CodeCompanion.Chat, verb: string, approval?: table)
---@field go_to_next fun(chat: CodeCompanion.Chat): boolean

---The actions on a question.
---@type CodeCompanion.QuestionActs?
local acts

local VERBS = { "accept_change", "always_accept", "reject_change", "cancel" }
M.NONE = "No approval is pending"

---Return the open question whose block is under the cursor.
---@param chat CodeCompanion.Chat
---@return table? approval
function M.under_cursor(chat)
  if api.nvim_get_current_buf() ~= chat.bufnr then
    return nil
  end
  local item = marks.item_at(chat, api.nvim_win_get_cursor(0)[1] - 1)
  for _, approval in ipairs(chat.approvals) do
    if item == approval.item then
      return approval
    end
  end
end

---Return the mapping that our key replaces: the chat's own, otherwise a global one.
---@param chat CodeCompanion.Chat
---@param key string
---@return table? map
local function present_map(chat, key)
  local wanted = vim.keycode(key)
  for _, maps in ipairs({ api.nvim_buf_get_keymap(chat.bufnr, "n"), api.nvim_get_keymap("n") }) do
    for _, map in ipairs(maps) do
      if vim.keycode(map.lhs) == wanted and not changes.is_ours(map) then
        return map
      end
    end
  end
end

---Return the keys to run instead if a key has another meaning (the mapping is an `expr` one, so that a count and a
---register still apply).
---@param chat CodeCompanion.Chat
---@param key string
---@param map table
---@return string
local function otherwise(chat, key, map)
  if map.callback and map.expr == 1 then
    local ok, keys = pcall(map.callback)
    return ok and keys or ""
  elseif map.callback then
    return ("<Cmd>lua require('codecompanion.chat.question.approval_keys').run_map(%d, %q)<CR>"):format(chat.bufnr, key)
  end
  return map.rhs or key
end

---@param chat CodeCompanion.Chat
---@param verb string
---@param key string
---@return string keys
local function pressed(chat, verb, key)
  local map = chat.approval_maps[key]
  if map and not M.under_cursor(chat) then
    return otherwise(chat, key, map)
  elseif vim.v.count > 0 then
    return "<Esc>"
  end
  return ("<Cmd>lua require('codecompanion.chat.question.approval_keys').run(%d, %q)<CR>"):format(chat.bufnr, verb)
end

---Run the chat's other mapping of a key.
---@param bufnr integer
---@param key string
function M.run_map(bufnr, key)
  local chat = registry.by_buffer(bufnr)
  local map = chat and chat.approval_maps and chat.approval_maps[key]
  if map and map.callback then
    map.callback()
  end
end

---Return whether a block is readable in the current window: all of it, or its end if it is taller than the window.
---@param chat CodeCompanion.Chat
---@param approval table
---@return boolean
local function is_in_sight(chat, approval)
  local first, last = marks.item_rows(chat, approval.item) -- last: the row after it
  if not first or not last then
    return false
  end
  local is_tall = last - first > api.nvim_win_get_height(0)
  return (is_tall or first + 1 >= vim.fn.line("w0")) and last <= vim.fn.line("w$")
end

---Perform a verb on the question under the cursor, or on the only open one.
---@param bufnr integer
---@param verb string
function M.run(bufnr, verb)
  local chat = registry.by_buffer(bufnr)
  if not chat or not acts then
    return
  end
  local under = M.under_cursor(chat)
  if under then
    return acts.act(chat, verb, under)
  end
  local open = questions.waiting(chat)
  open = #open > 0 and open or chat.approvals
  if #open == 1 and is_in_sight(chat, open[1]) then
    return acts.act(chat, verb, open[1])
  end
  acts.go_to_next(chat)
  for _, approval in ipairs(open) do
    approval.came_at = (vim.uv or vim.loop).now() -- it has to be read first
  end
  M.point(
    #open == 1 and "This is the approval: read it, then press the key again"
      or ("%d approvals are open; keys answer the one under the cursor"):format(#open)
  )
end

---@param chat CodeCompanion.Chat
---@return { [1]: string, [2]: string }[] verb, key
local function all_keys(chat)
  local found = {}
  for _, verb in ipairs(VERBS) do
    for _, key in ipairs(changes.keys(verb, "n", chat.bufnr)) do
      found[#found + 1] = { verb, key }
    end
  end
  return found
end

---Whether the command line points to an approval.
local pointed = false

---Clear the command line after an approval was visited or answered.
function M.forget_pointing()
  if pointed then
    pointed = false
    vim.schedule(say.nothing)
  end
end

---Point to an approval on the command line.
---@param text string
function M.point(text)
  pointed = true
  say.hint(text)
end

---Report that no approval is pending. If the turn may still ask for one, the next question clears the report.
---@param chat CodeCompanion.Chat
function M.point_to_none(chat)
  if status.is_busy(chat) then
    return M.point(M.NONE .. " yet")
  end
  say.hint(M.NONE)
end

---Map the keys to a hint while no question is open. A key that does not end in a digit may be one of Neovim's own.
---@param chat CodeCompanion.Chat
function M.map_to_hint(chat)
  if chat.approval_maps or not api.nvim_buf_is_valid(chat.bufnr) then
    return
  end
  for _, entry in ipairs(all_keys(chat)) do
    local verb, key = entry[1], entry[2]
    if key:find("^.+[1-5]$") and not present_map(chat, key) then
      vim.keymap.set("n", key, function()
        M.point_to_none(chat)
      end, { buffer = chat.bufnr, nowait = true, silent = true, desc = changes.desc(verb) })
    end
  end
end

---@param chat CodeCompanion.Chat
local function map_all(chat)
  M.forget_pointing()
  chat.approval_maps, chat.approval_keys = {}, all_keys(chat)
  for _, entry in ipairs(chat.approval_keys) do
    local verb, key = entry[1], entry[2]
    chat.approval_maps[key] = present_map(chat, key)
    vim.keymap.set("n", key, function()
      return pressed(chat, verb, key)
    end, {
      buffer = chat.bufnr,
      expr = true,
      nowait = true,
      silent = true,
      desc = chat.approval_maps[key] and chat.approval_maps[key].desc or changes.desc(verb),
    })
  end
end

---@param chat CodeCompanion.Chat
local function unmap_all(chat)
  for _, entry in ipairs(chat.approval_keys) do
    local key = entry[2]
    pcall(vim.keymap.del, "n", key, { buffer = chat.bufnr })
    local map = chat.approval_maps[key]
    if map and map.buffer ~= 0 then
      vim.keymap.set("n", key, map.callback or map.rhs or "", {
        buffer = chat.bufnr,
        expr = map.expr == 1,
        nowait = map.nowait == 1,
        silent = map.silent == 1,
        remap = map.noremap == 0,
        desc = map.desc,
      })
    end
  end
  chat.approval_maps, chat.approval_keys = nil, nil
  M.map_to_hint(chat)
end

---Map or unmap the keys, depending on open questions.
---@param chat CodeCompanion.Chat
---@param what CodeCompanion.QuestionActs
function M.update(chat, what)
  acts = what
  local wanted = #chat.approvals > 0
  if wanted ~= (chat.approval_maps ~= nil) and api.nvim_buf_is_valid(chat.bufnr) then
    (wanted and map_all or unmap_all)(chat)
  end
end

return M
