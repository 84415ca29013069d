---Finds the windows that show a chat, and their bars.

local api = vim.api
local options = require("codecompanion.chat.state.chat_options")

local M = {}

M.STATUSLINE = "%{%v:lua.require'codecompanion.chat.buffer.bar'.line()%}"
---The status line below a winbar that shows the state.
M.NAME = "%< CodeCompanion%=%P "
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

---Return whether a window's status line is visible even when another window is current. (A float has one only in
---Neovim 0.12; there the winbar is used.)
---@param win integer
---@return boolean
local function has_statusline(win)
  local function is_split(one)
    return api.nvim_win_get_config(one).relative == ""
  end
  if not is_split(win) or vim.o.laststatus == 3 then
    return false
  end
  local tab = api.nvim_win_get_tabpage(win)
  return vim.o.laststatus == 2
    or (vim.o.laststatus == 1 and #vim.tbl_filter(is_split, api.nvim_tabpage_list_wins(tab)) > 1)
end

---Return whether the chat window gets our winbar. The user's own winbar takes precedence; by default it is used where
---our status line is not visible.
---@param win integer
---@return boolean
local function wants_winbar(win)
  local setting = options.display().winbar
  if setting == "never" or vim.go.winbar ~= "" or not vim.list_contains({ "", M.WINBAR }, vim.wo[win].winbar) then
    return false
  end
  return setting == "always" or not M.is_plain_statusline() or not has_statusline(win)
end

---Return the bars of a chat window: one of them shows the state.
---@param win integer
---@return { statusline: string, winbar?: string } bars `winbar` is nil if it stays as it is
function M.bars(win)
  local in_winbar = wants_winbar(win)
  local bars = { statusline = "", winbar = in_winbar and M.WINBAR or nil }
  if not in_winbar and vim.wo[win].winbar == M.WINBAR then
    bars.winbar = "" -- it was a float or the only window
  end
  local is_float = api.nvim_win_get_config(win).relative ~= ""
  if M.is_plain_statusline() and not (is_float and vim.o.laststatus ~= 3) then
    bars.statusline = in_winbar and M.NAME or M.STATUSLINE
  end
  return bars
end

---Update the bars of a chat's windows after a window was opened, closed or moved, or 'laststatus' was set. The user's
---own bars stay.
---@param chat CodeCompanion.Chat
function M.update_bars(chat)
  local set_by_user = options.display().window.opts or {}
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    for name, value in pairs(M.bars(win)) do
      local present = api.nvim_get_option_value(name, { scope = "local", win = win })
      local is_ours = vim.list_contains({ "", M.STATUSLINE, M.NAME, M.WINBAR }, present)
      if present ~= value and is_ours and set_by_user[name] == nil then
        api.nvim_set_option_value(name, value, { scope = "local", win = win })
      end
    end
  end
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
