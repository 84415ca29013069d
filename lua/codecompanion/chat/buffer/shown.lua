---Finds the windows that show a chat, and their bars.

local api = vim.api
local options = require("codecompanion.chat.state.chat_options")

local M = {}

M.STATUSLINE = "%{%v:lua.require'codecompanion.chat.buffer.bar'.line()%}"
M.WINBAR = "%{%v:lua.require'codecompanion.chat.buffer.bar'.winbar()%}"

---Return the windows of this tab page that show the chat.
---@param chat CodeCompanion.Chat
---@return integer[]
function M.visible(chat)
  return vim.tbl_filter(function(win)
    return api.nvim_win_get_buf(win) == chat.bufnr
  end, api.nvim_tabpage_list_wins(0))
end

---Return whether the user has no status line of their own.
---@return boolean
function M.is_plain_statusline()
  return vim.go.statusline == api.nvim_get_option_info2("statusline", {}).default
end

---Return whether a window's status line is visible even when another window is current.
---@param win integer
---@return boolean
local function has_statusline(win)
  if api.nvim_win_get_config(win).relative ~= "" or vim.o.laststatus == 3 then
    return false
  end
  return vim.o.laststatus == 2 or (vim.o.laststatus == 1 and #api.nvim_tabpage_list_wins(0) > 1)
end

---Return whether the chat window gets our winbar. The user's own winbar takes precedence; by default it is used where
---our status line is not visible.
---@param win integer
---@return boolean
function M.wants_winbar(win)
  local setting = options.display().winbar
  if setting == "never" or vim.go.winbar ~= "" or not vim.list_contains({ "", M.WINBAR }, vim.wo[win].winbar) then
    return false
  end
  return setting == "always" or not M.is_plain_statusline() or not has_statusline(win)
end

---Return whether every window of the chat shows the meter in one of our bars; then the buffer does not repeat it.
---@param chat CodeCompanion.Chat
---@return boolean
function M.shows_meter(chat)
  local wins = vim.fn.win_findbuf(chat.bufnr)
  for _, win in ipairs(wins) do
    local in_statusline = vim.wo[win].statusline == M.STATUSLINE and has_statusline(win)
    if vim.wo[win].winbar ~= M.WINBAR and not in_statusline then
      return false
    end
  end
  return #wins > 0
end

return M
