---What is done around an exchange of the modules (`:Lazy reload`).

local M = {}

local LEAVE_MS = 1500

---Draw the open chats again with the modules that are loaded now.
local function read_chats_again()
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.api.nvim_buf_get_name(bufnr):find("^codecompanion://[%w_-]+$") then
      vim.api.nvim_buf_call(bufnr, function()
        vim.cmd.edit({ bang = true })
      end)
    end
  end
end

---Before the modules go: drafts are saved, the host goes, and once the new ones are there the chats are drawn again.
function M.deactivate()
  local chats, host = package.loaded["codecompanion.chat"], package.loaded["codecompanion.host"]
  local inline = package.loaded["codecompanion.inline"]
  if inline then
    inline.disable()
  end
  for _, chat in ipairs(chats and chats.list() or {}) do
    require("codecompanion.chat.wire.draft").save(chat)
  end
  local pasting = package.loaded["codecompanion.chat.ui.pasting"]
  if pasting then
    pasting.stop()
  end
  if host then
    host.stop(LEAVE_MS)
  end
  vim.schedule(read_chats_again)
end

return M
