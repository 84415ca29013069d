---Chat buffers by name, `codecompanion://<chat id>`: what Vim does to them (`:e`, `:b`, a session file) ends here.

local api = vim.api

local M = {}

local PREFIX = "codecompanion://"

---@param id string
---@return string
function M.of(id)
  return PREFIX .. id
end

---@param bufnr integer
---@return string? id
local function id_of(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  local id = name:sub(1, #PREFIX) == PREFIX and name:sub(#PREFIX + 1) or ""
  return id:find("^[%w_-]+$") and id or nil
end

---The buffer that has the name of a chat, loaded or not.
---@param id string
---@return integer? bufnr
function M.buffer_of(id)
  local wanted = M.of(id)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_get_name(bufnr) == wanted then
      return bufnr
    end
  end
end

---The buffer is to be filled: `:e`, `:b` after `:bd`, `:e codecompanion://<id>`, a session file.
---@param bufnr integer
function M.read(bufnr)
  local chats = require("codecompanion.chat")
  local id = id_of(bufnr)
  if not id then
    require("codecompanion.say").line("a chat is named codecompanion://<id>; :CodeCompanionChat Resume lists yours")
    return
  end
  chats.fill(bufnr, id)
end

---The buffer got its name without being read: session files do that (`:file`).
---@param bufnr integer
function M.named(bufnr)
  if vim.g.SessionLoad == 1 then
    -- `:file` says a line per buffer, and two chats would end in a prompt. The session file sets 'shortmess' for itself
    -- and puts the user's back at its end.
    vim.opt.shortmess:append("F")
  end
  if not require("codecompanion.chat").by_buffer(bufnr) and api.nvim_buf_is_loaded(bufnr) then
    M.read(bufnr)
    -- The window had the buffer before it was a chat's: nothing else will tell it.
    vim.schedule(function()
      local chat = require("codecompanion.chat").by_buffer(bufnr)
      for _, win in ipairs(chat and vim.fn.win_findbuf(bufnr) or {}) do
        require("codecompanion.chat.window").entered(chat, win)
      end
    end)
  end
end

return M
