---The keys of an approval. They exist while a question is open, in normal mode, and count only while the cursor is on
---its block; elsewhere each key does what it always does. A count answers nothing: it belongs to a motion.

local api = vim.api
local keymaps = require("codecompanion.chat.state.keys")
local marks = require("codecompanion.chat.buffer.marks")
local registry = require("codecompanion.chat.state.registry")
local say = require("codecompanion.say")

local M = {}

---What is done with the question under the cursor.
---@type fun(chat: CodeCompanion.Chat, name: string)?
local act

---The actions that count on the block only.
local ON_BLOCK = {
  "approve_once",
  "approve_always",
  "approve_prefix",
  "reject",
  "cancel_all",
  "show_diff",
}

---The open question whose block the cursor is on.
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

---What the key does without us: the chat's own map, else a global one.
---@param chat CodeCompanion.Chat
---@param key string
---@return table? map
local function present_map(chat, key)
  local wanted = vim.keycode(key)
  for _, maps in ipairs({ api.nvim_buf_get_keymap(chat.bufnr, "n"), api.nvim_get_keymap("n") }) do
    for _, map in ipairs(maps) do
      if vim.keycode(map.lhs) == wanted then
        return map
      end
    end
  end
end

---The keys to go on with where there is no block under the cursor (the map is an `expr` one, so that a count and a
---register stay in force).
---@param chat CodeCompanion.Chat
---@param key string
---@return string
local function otherwise(chat, key)
  local map = chat.approval_maps[key]
  if not map and key:find("^g%d$") then
    return "<Cmd>lua require('codecompanion.chat.question.keys').point_to_block()<CR>" -- no key of Neovim's
  elseif not map then
    return key
  elseif map.callback and map.expr == 1 then
    local ok, keys = pcall(map.callback)
    return ok and keys or ""
  elseif map.callback then
    return ("<Cmd>lua require('codecompanion.chat.question.keys').run(%d, %q, true)<CR>"):format(chat.bufnr, key)
  end
  return map.rhs or key
end

---@param chat CodeCompanion.Chat
---@param name string
---@param key string
---@return string keys
local function pressed(chat, name, key)
  if not M.under_cursor(chat) then
    return otherwise(chat, key)
  end
  if vim.v.count > 0 then
    return "<Esc>"
  end
  return ("<Cmd>lua require('codecompanion.chat.question.keys').run(%d, %q)<CR>"):format(chat.bufnr, name)
end

---What a key was found to mean; called by the maps.
---@param bufnr integer
---@param name string Action of the approval, or the key when it means something else here
---@param elsewhere? boolean
function M.run(bufnr, name, elsewhere)
  local chat = registry.by_buffer(bufnr)
  if not chat then
    return
  end
  if elsewhere then
    local map = chat.approval_maps and chat.approval_maps[name]
    return map and map.callback and map.callback()
  end
  if act then
    act(chat, name)
  end
end

---@return { [1]: string, [2]: string }[] action, key
local function all_keys()
  local found = {}
  for _, action in ipairs(ON_BLOCK) do
    for _, key in ipairs(keymaps.keys(action, "n")) do
      found[#found + 1] = { action, key }
    end
  end
  return found
end

---@param chat CodeCompanion.Chat
local function map_all(chat)
  chat.approval_maps = {}
  for _, entry in ipairs(all_keys()) do
    local name, key = entry[1], entry[2]
    chat.approval_maps[key] = present_map(chat, key)
    vim.keymap.set("n", key, function()
      return pressed(chat, name, key)
    end, {
      buffer = chat.bufnr,
      expr = true,
      nowait = true,
      silent = true,
      desc = chat.approval_maps[key] and chat.approval_maps[key].desc or "Approval",
    })
  end
end

---@param chat CodeCompanion.Chat
local function unmap_all(chat)
  for _, entry in ipairs(all_keys()) do
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
  chat.approval_maps = nil
end

---Whether the command line says that no approval is under the cursor.
local pointed = false

---The cursor is on an approval now, or one was answered: the command line says nothing else any more.
function M.forget_pointing()
  if pointed then
    pointed = false
    vim.schedule(say.nothing)
  end
end

---A key of an approval was pressed somewhere else.
function M.point_to_block()
  local key = keymaps.keys("next_approval", "n")[1]
  local text = "The approval is not under the cursor" .. (key and (" · %s goes there"):format(key) or "")
  pointed = true
  say.hint(text)
end

---Let the keys follow whether questions are open.
---@param chat CodeCompanion.Chat
---@param carry_out fun(chat: CodeCompanion.Chat, name: string) What a key does on the block
function M.update(chat, carry_out)
  act = carry_out
  local wanted = #chat.approvals > 0
  if wanted ~= (chat.approval_maps ~= nil) and api.nvim_buf_is_valid(chat.bufnr) then
    (wanted and map_all or unmap_all)(chat)
  end
end

return M
