---Shows a file beside the chat in a suitable window. A window is unsuitable if it has unsaved changes and 'hidden' is
---off, or if it has 'winfixbuf'; if no window is suitable, a split is opened.

local api = vim.api

local say = require("codecompanion.say")

local M = {}

---Return whether a window may show another buffer.
---@param win integer
---@return boolean
local function can_take(win)
  local bufnr = api.nvim_win_get_buf(win)
  if api.nvim_win_get_config(win).relative ~= "" or vim.wo[win].winfixbuf or vim.bo[bufnr].buftype ~= "" then
    return false
  end
  local hides = vim.bo[bufnr].bufhidden
  local is_kept = hides == "hide" or (hides == "" and vim.o.hidden) or #vim.fn.win_findbuf(bufnr) > 1
  return is_kept or not vim.bo[bufnr].modified
end

---Go to a suitable window for the file, or to a new one if there is none.
local function go_to_window()
  local before = vim.fn.win_getid(vim.fn.winnr("#"))
  for _, win in ipairs({ before, unpack(api.nvim_tabpage_list_wins(0)) }) do
    if win ~= 0 and can_take(win) then
      return api.nvim_set_current_win(win)
    end
  end
  vim.cmd.split()
  vim.wo.winfixbuf = false
end

---@param path string
---@param line? integer 1-based; beyond the end means the last line
---@param column? integer 1-based, in bytes
function M.file(path, line, column)
  local bufnr = require("codecompanion.system.literal_paths").buffer_of(path)
  local shown = bufnr > 0 and vim.fn.win_findbuf(bufnr) or {}
  local here = vim.tbl_filter(function(win)
    return vim.list_contains(api.nvim_tabpage_list_wins(0), win)
  end, shown)[1]
  if here then
    api.nvim_set_current_win(here)
  else
    go_to_window()
    local ok, problem = pcall(require("codecompanion.system.literal_paths").open, path)
    if not ok then
      local reason = tostring(problem):gsub("^.-Vim[^:]*:", "")
      return say.line(reason, require("codecompanion.severity").ERROR)
    end
  end
  if line then
    line = math.max(1, math.min(line, api.nvim_buf_line_count(0)))
    api.nvim_win_set_cursor(0, { line, math.max(0, (column or 1) - 1) })
    vim.cmd("normal! zvzz")
  end
end

---Neovim's own keys that open the name under the cursor. They treat `term://…` as a terminal to start, and pass other
---URLs to any plugin that reads them.
local OPEN_NAMES = {
  gf = "edit",
  gF = "edit",
  ["]f"] = "edit",
  ["[f"] = "edit",
  ["<C-W>f"] = "split",
  ["<C-W><C-F>"] = "split",
  ["<C-W>F"] = "split",
  ["<C-W>gf"] = "tabedit",
  ["<C-W>gF"] = "tabedit",
}

---@param mode "n"|"x"
---@param command string
local function open_name(mode, command)
  local named = require("codecompanion.screen.named_location")
  local folders = { vim.fn.getcwd() }
  local place
  if mode == "x" then
    local lines = vim.fn.getregion(vim.fn.getpos("v"), vim.fn.getpos("."), { type = vim.fn.mode() })
    place = #lines == 1 and named.read(vim.trim(lines[1]), folders) or nil
  else
    place = named.at(api.nvim_get_current_line(), api.nvim_win_get_cursor(0)[2], folders)
  end
  if not place then
    return say.hint("No file here to open")
  elseif command ~= "edit" then
    require("codecompanion.system.literal_paths").open(place.path, command)
    vim.wo.winfixbuf = false
  end
  M.file(place.path, place.line, place.column)
end

---Make the keys that open the name under the cursor open only files, because the text comes from a model, a web page or
---a folder. The user's own mappings are kept.
---@param bufnr integer
function M.only_files(bufnr)
  for _, mode in ipairs({ "n", "x" }) do
    local mapped = {}
    for _, map in ipairs(api.nvim_get_keymap(mode)) do
      mapped[map.lhsraw or ""] = true
    end
    for key, command in pairs(OPEN_NAMES) do
      if not mapped[vim.keycode(key)] then
        vim.keymap.set(mode, key, function()
          open_name(mode, command)
        end, { buffer = bufnr, silent = true, desc = "Open the file under the cursor" })
      end
    end
  end
end

return M
