---Registers the open chats, by buffer and in the order they were opened.

local M = {}

---@type table<integer, CodeCompanion.Chat>
local by_buffer = {}
---@type CodeCompanion.Chat[]
local chats = {}

---@type CodeCompanion.Chat? The most recently used chat
M.last = nil

---Return the chat of a buffer (0 or nil: the current one).
---@param bufnr? integer
---@return CodeCompanion.Chat?
function M.by_buffer(bufnr)
  if not bufnr or bufnr == 0 then
    bufnr = vim.api.nvim_get_current_buf()
  end
  return by_buffer[bufnr]
end

---@param id string
---@return CodeCompanion.Chat?
function M.by_id(id)
  for _, chat in ipairs(chats) do
    if chat.id == id then
      return chat
    end
  end
end

---Return the current chat: that of the current buffer, otherwise the last one.
---@return CodeCompanion.Chat?
function M.current()
  return M.by_buffer() or M.last
end

---Return all open chats, oldest first.
---@return CodeCompanion.Chat[]
function M.list()
  return vim.list_slice(chats)
end

---@param chat CodeCompanion.Chat
function M.add(chat)
  chats[#chats + 1] = chat
end

---Assign a buffer to a chat.
---@param chat CodeCompanion.Chat
---@param bufnr integer
function M.give_buffer(chat, bufnr)
  if chat.bufnr and chat.bufnr ~= bufnr then
    by_buffer[chat.bufnr] = nil
  end
  by_buffer[bufnr] = chat
end

---@param chat CodeCompanion.Chat
---@return boolean removed Whether it was open
function M.remove(chat)
  if not by_buffer[chat.bufnr] then
    return false
  end
  by_buffer[chat.bufnr] = nil
  chats = vim.tbl_filter(function(other)
    return other ~= chat
  end, chats)
  if M.last == chat then
    M.last = chats[#chats]
  end
  return true
end

return M
