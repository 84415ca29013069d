---Tells the host when the user saves or discards a buffer with unsaved changes made by a tool, so that the mark beside
---the change is updated.

local api = vim.api

local M = {}

---Return whether a tool of the chat changed this file, and the change is not saved.
---@param chat CodeCompanion.Chat
---@param path string
---@return boolean
local function has_unsaved(chat, path)
  for _, item in pairs(chat.items) do
    if item.change and item.change.unsaved and item.change.path == path then
      return true
    end
  end
  return false
end

---Ask the host of each chat with an unsaved change to this file whether the change was saved or discarded.
---@param path string
local function check(path)
  for _, chat in ipairs(require("codecompanion.chat.state.open_chats").list()) do
    if not chat.read_only and has_unsaved(chat, path) then
      -- listing the changes updates them first
      require("codecompanion.chat.state.session").request(chat, "list_changes", {}, function() end)
    end
  end
end

---Watch buffers; called for each unsaved change that is drawn.
function M.watch()
  local group = api.nvim_create_augroup("codecompanion.chat.unsaved_changes", {})
  api.nvim_create_autocmd({ "BufWritePost", "BufReadPost", "BufUnload" }, {
    group = group,
    callback = function(args)
      local path = require("codecompanion.files.loaded_files").path_of(args.buf)
      if path then
        vim.schedule(function() -- the buffer is read or unloaded
          check(path)
        end)
      end
    end,
  })
end

return M
