---Finds chats that wait for an answer from the user.

local registry = require("codecompanion.chat.state.open_chats")

local M = {}

---Return the quoted title of a chat, for messages.
---@param chat CodeCompanion.Chat
---@return string
function M.name_of(chat)
  local title = require("codecompanion.chat.state.chat_title").shown(chat.title)
  return ("“%s”"):format(vim.fn.strcharpart(title, 0, 40))
end

---Return the drawn tool calls that wait for an answer.
---@param chat CodeCompanion.Chat
---@return CodeCompanion.Approval[]
function M.waiting(chat)
  return chat.approvals or {}
end

---Return whether a tool call of the chat waits for an answer, drawn or not.
---@param chat CodeCompanion.Chat
---@return boolean
function M.waits(chat)
  return #M.waiting(chat) > 0 or next(chat.put_away) ~= nil
end

---Return text for status lines about chats that wait for an answer, except the visible ones and the one shown there.
---@param bufnr? integer Defaults to the current buffer
---@return string? text
function M.elsewhere(bufnr)
  bufnr = bufnr or vim.api.nvim_get_current_buf()
  local waiting = vim.tbl_filter(function(chat)
    return M.waits(chat) and chat.bufnr ~= bufnr and vim.fn.bufwinid(chat.bufnr) == -1
  end, registry.list())
  if #waiting > 1 then
    return ("%d chats are waiting for your approval"):format(#waiting)
  end
  return waiting[1] and ("%s is waiting for your approval"):format(M.name_of(waiting[1])) or nil
end

return M
