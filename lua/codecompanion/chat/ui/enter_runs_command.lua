---Runs a slash command when `<CR>` ends its line in Insert mode. The line break itself is noticed rather than mapping
---the key, which belongs to completion plugins.

local api = vim.api

local buffer = require("codecompanion.chat.buffer.chat_text")
local draft = require("codecompanion.chat.wire.draft")
local slash = require("codecompanion.chat.slash")

local M = {}

---Return whether nothing that belongs to the command in `line` can follow on the next line.
---@param line string
---@return boolean
local function is_complete(line)
  local command, argument = slash.parse(line)
  return command ~= nil and (argument == "" or not command.multiline)
end

---Run commands in the input of a chat at `<CR>`, but not at a line break that was pasted or added by `o`.
---@param chat CodeCompanion.Chat
function M.set(chat)
  local keys = api.nvim_create_namespace("codecompanion.chat.enter." .. chat.bufnr)
  local is_enter = false

  ---@param events string|string[]
  ---@param callback fun()
  local function on(events, callback)
    local group = "codecompanion.chat." .. chat.bufnr
    api.nvim_create_autocmd(events, { group = group, buffer = chat.bufnr, callback = callback })
  end

  on("InsertEnter", function()
    is_enter = false
    vim.on_key(function(_, typed)
      if typed ~= "" then
        is_enter = typed == "\r"
      end
    end, keys)
  end)
  on({ "InsertLeave", "BufLeave", "BufUnload" }, function()
    vim.on_key(nil, keys)
  end)
  on("TextChangedI", function()
    if not is_enter or chat.damaged then
      return
    end
    is_enter = false
    local line = buffer.input_text(chat):match("^(/[^\n]*)\n[ \t]*$")
    if line and is_complete(line) then
      draft.set(chat, line)
      require("codecompanion.chat.ui.submit").send(chat)
    end
  end)
end

return M
