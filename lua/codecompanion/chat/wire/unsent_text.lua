---Saves text that no host had accepted when Neovim exited (the Python environment was not or could not be installed):
---it is stored in a file and put into the input of the next new chat.

local uv = vim.uv or vim.loop

local buffer = require("codecompanion.chat.buffer.chat_text")

local M = {}

---@return string
local function path()
  return vim.fn.stdpath("state") .. "/codecompanion/unsent.txt"
end

---Save text that the host does not have: messages being sent and the draft.
---@param chats CodeCompanion.Chat[]
function M.keep(chats)
  local texts = {}
  for _, chat in ipairs(chats) do
    if chat.attached ~= "yes" or chat.draft.refused then
      for _, outgoing in ipairs(chat.outgoing) do
        table.insert(texts, outgoing.text)
      end
      local loaded = vim.api.nvim_buf_is_loaded(chat.bufnr)
      local draft = loaded and buffer.input_text(chat) or chat.draft.kept
      table.insert(texts, draft or "")
    end
  end
  local text = vim.trim(table.concat(texts, "\n"))
  if text == "" then
    return
  end
  pcall(vim.fn.mkdir, vim.fs.dirname(path()), "p", 448) -- 0700
  local descriptor = uv.fs_open(path(), "a", 384) -- 0600
  if descriptor then
    uv.fs_write(descriptor, text .. "\n")
    uv.fs_close(descriptor)
  end
end

---Put the saved text into the input of a new chat, which then owns it.
---@param chat CodeCompanion.Chat
function M.give_back(chat)
  local descriptor = uv.fs_open(path(), "r", 0)
  local stat = descriptor and uv.fs_fstat(descriptor)
  if not stat then
    return
  end
  local text = uv.fs_read(descriptor, stat.size, 0)
  uv.fs_close(descriptor)
  if text and uv.fs_unlink(path()) then
    require("codecompanion.chat.wire.draft").prepend(chat, vim.trim(text))
  end
end

return M
