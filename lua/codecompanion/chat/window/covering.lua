---Keeps a chat that covers or replaced another window out of the way when the user goes to that window.

local api = vim.api

local options = require("codecompanion.chat.state.chat_options")
local registry = require("codecompanion.chat.state.open_chats")
local shown = require("codecompanion.chat.buffer.shown")

local M = {}

local MOSTLY = 0.5 -- a float that covers more of a window than this hides it

---Return the share of a window that a float covers, 0..1.
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

---Hide a floating chat when the user goes to a covered window: text typed there, and content just opened there (the
---manual, a report, a file), must be visible. Toggling shows the chat again.
---@param hide fun(chat: CodeCompanion.Chat) Hides a chat
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

---Let `:q` in a chat that replaced a file, because there was no space for a split, restore the file instead of closing
---the window or exiting Neovim.
---@param chat CodeCompanion.Chat
function M.survive_quit(chat)
  api.nvim_create_autocmd("QuitPre", {
    group = api.nvim_create_augroup("codecompanion.window.quit." .. chat.bufnr, {}),
    buffer = chat.bufnr,
    callback = function()
      local replaced = chat.replaced
      local asked_for = options.display().window.layout == "buffer"
      local is_in_its_place = vim.fn.winnr("$") == 1 or vim.w.codecompanion_layout == "buffer"
      if asked_for or not is_in_its_place or not replaced or not api.nvim_buf_is_valid(replaced) then
        return
      end
      local from = vim.w.codecompanion_opened_from
      chat.replaced = nil
      api.nvim_open_win(replaced, false, { split = "above", win = api.nvim_get_current_win() })
      vim.schedule(function()
        if vim.list_contains(api.nvim_tabpage_list_wins(0), from) then
          api.nvim_set_current_win(from)
        end
      end)
    end,
  })
end

return M
