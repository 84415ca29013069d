---A chat that lies over another window, or took its place for want of room: it never hides what the user goes to.

local api = vim.api

local options = require("codecompanion.chat.state.chat_options")
local registry = require("codecompanion.chat.state.open_chats")
local shown = require("codecompanion.chat.buffer.shown")

local M = {}

local MOSTLY = 0.5 -- a float that covers more of a window than this hides it

---How much of a window a float covers, 0..1.
---@param float integer
---@param win integer
---@return number
local function covered(float, win)
  local function box(of)
    local row, col = unpack(api.nvim_win_get_position(of))
    return row, col, row + api.nvim_win_get_height(of), col + api.nvim_win_get_width(of)
  end
  local top, left, bottom, right = box(win)
  local float_top, float_left, float_bottom, float_right = box(float)
  local rows = math.min(bottom, float_bottom) - math.max(top, float_top)
  local columns = math.min(right, float_right) - math.max(left, float_left)
  return math.max(0, rows) * math.max(0, columns) / ((bottom - top) * (right - left))
end

---A floating chat gets out of the way of the window that the user goes to: what is typed there must be seen, and so
---must what has just been opened there (the manual, a report, a file). Toggling brings the chat back.
---@param hide fun(chat: CodeCompanion.Chat) Takes a chat off the screen
function M.give_way(hide)
  local here = api.nvim_get_current_win()
  if api.nvim_win_get_config(here).relative ~= "" then
    return
  end
  for _, chat in ipairs(registry.list()) do
    for _, win in ipairs(shown.visible(chat)) do
      local floats = vim.w[win].codecompanion_layout == "float" and api.nvim_win_get_config(win).relative ~= ""
      if floats and covered(win, here) > MOSTLY then
        hide(chat)
        break
      end
    end
  end
end

---A chat that took the only window for want of room is left with `:q` as the split would have been: the file is there
---again, and Neovim stays.
---@param chat CodeCompanion.Chat
function M.survive_quit(chat)
  api.nvim_create_autocmd("QuitPre", {
    group = api.nvim_create_augroup("codecompanion.window.quit." .. chat.bufnr, {}),
    buffer = chat.bufnr,
    callback = function()
      local replaced = chat.replaced
      local asked_for = options.display().window.layout == "buffer"
      if asked_for or vim.fn.winnr("$") > 1 or not replaced or not api.nvim_buf_is_valid(replaced) then
        return
      end
      chat.replaced = nil
      api.nvim_open_win(replaced, false, { split = "above", win = api.nvim_get_current_win() })
    end,
  })
end

return M
