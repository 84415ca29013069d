---Prepares for and recovers from a reload of the modules (`:Lazy reload`).

local M = {}

local LEAVE_MS = 1500

---Redraw the open chats with the newly loaded modules.
local function read_chats_again()
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.startswith(vim.api.nvim_buf_get_name(bufnr), "codecompanion://") then
      vim.api.nvim_buf_call(bufnr, function()
        vim.cmd.edit({ bang = true })
      end)
    end
  end
end

---Stop requests that run without a chat window, because their replies could not be received.
local function end_edits()
  local of_buffer = package.loaded["codecompanion.changes.proposals_of_buffer"]
  for _, bufnr in ipairs(of_buffer and vim.api.nvim_list_bufs() or {}) do
    for _, edit in ipairs(of_buffer.live(bufnr)) do
      of_buffer.finish(edit, "Plugin reloaded: the proposed edit was discarded.")
    end
  end
  local questions = package.loaded["codecompanion.headless.headless_question"]
  if questions then
    questions.cancel_all()
  end
end

---Delete the autocommands of the old modules, except those of plugin/, which is sourced again.
local function end_autocommands()
  local groups = {}
  for _, one in ipairs(vim.api.nvim_get_autocmds({})) do
    local name = one.group_name or ""
    groups[name] = name:find("^codecompanion[._]") and name ~= "codecompanion.buffers" or nil
  end
  for name in pairs(groups) do
    vim.api.nvim_del_augroup_by_name(name)
  end
end

---@param listener { stop: fun() }? nil if the module was not loaded
local function stop(listener)
  if listener then
    listener.stop()
  end
end

---Prepare for unloading the modules: save drafts, stop listeners, timers and requests, and stop the host. Once the new
---modules are loaded, the chats are redrawn.
function M.deactivate()
  local chats, host = package.loaded["codecompanion.chat"], package.loaded["codecompanion.host"]
  local inline = package.loaded["codecompanion.inline"]
  if inline then
    inline.disable()
  end
  end_edits()
  for _, chat in ipairs(chats and chats.list() or {}) do
    local draft = require("codecompanion.chat.wire.draft")
    draft.save(chat)
    draft.close(chat)
    require("codecompanion.chat.draw.activity").stop(chat)
  end
  stop(package.loaded["codecompanion.chat.life.pasting"])
  stop(package.loaded["codecompanion.chat.reports"])
  stop(package.loaded["codecompanion.screen.float"])
  end_autocommands()
  if host then
    host.retire(LEAVE_MS)
  end
  vim.schedule(read_chats_again)
end

return M
