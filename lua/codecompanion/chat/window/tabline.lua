---Draws the tab line as Neovim does, but with titles of chats instead of ids, if the user has no tab line of their own
---(`display.chat.tabline`).

local api = vim.api

local chat_title = require("codecompanion.chat.state.chat_title")
local fit = require("codecompanion.text.fit")
local options = require("codecompanion.chat.state.chat_options")

local M = {}

local MAX_LENGTH, MIN_LENGTH = 30, 6
local NARROW = 60
local OURS = "%!v:lua.require'codecompanion.chat.window.tabline'.line()"

---@param text string
---@return string
local function escaped(text)
  return (text:gsub("%%", "%%%%"))
end

---Return the name shown for a buffer in the tab line.
---@param bufnr integer
---@return string
function M.name(bufnr)
  local chat = vim.b[bufnr].codecompanion_chat
  if chat then
    return fit.cut(chat_title.shown(chat.title), MAX_LENGTH)
  end
  if vim.o.columns >= NARROW and require("codecompanion.changes.change_view").of(bufnr) then
    return "diff" -- the winbar below names the file, unless the screen is narrow
  end
  local name = api.nvim_buf_get_name(bufnr)
  if name ~= "" then
    return vim.fn.pathshorten(vim.fn.fnamemodify(name, ":~:."))
  end
  return vim.bo[bufnr].buftype == "" and "[No Name]" or "[Scratch]"
end

---@param tab integer Handle of a tab page
---@return { marks: string, name: string, is_chat: boolean }
local function parts_of(tab)
  local wins = vim.tbl_filter(function(win)
    return api.nvim_win_get_config(win).relative == ""
  end, api.nvim_tabpage_list_wins(tab))
  local changed = vim.iter(wins):any(function(win)
    return vim.bo[api.nvim_win_get_buf(win)].modified
  end)
  local marks = (#wins > 1 and tostring(#wins) or "") .. (changed and "+" or "")
  local bufnr = api.nvim_win_get_buf(api.nvim_tabpage_get_win(tab))
  local is_chat = vim.b[bufnr].codecompanion_chat ~= nil
  return { marks = marks ~= "" and marks .. " " or "", name = M.name(bufnr), is_chat = is_chat }
end

---Shorten a name: the beginning of a title and the end of a file name are the most informative.
---@param label { marks: string, name: string, is_chat: boolean }
---@param room integer
---@return string
local function fitting(label, room)
  room = math.max(1, room - api.nvim_strwidth(label.marks))
  if label.is_chat then
    return label.marks .. fit.cut(label.name, room)
  end
  local name = label.name
  while api.nvim_strwidth(name) > room do
    name = vim.fn.strcharpart(name, 1)
  end
  return label.marks .. name
end

---Return the columns for each label: as many as it needs, or its share if not all fit.
---@param labels { marks: string, name: string }[]
---@return integer
local function room_of(labels)
  local needed = 2 -- for the X
  for _, label in ipairs(labels) do
    needed = needed + api.nvim_strwidth(label.marks .. label.name) + 2
  end
  return needed <= vim.o.columns and vim.o.columns or math.max(MIN_LENGTH, math.floor((vim.o.columns - 2) / #labels))
end

---Return the tab line for 'tabline'.
---@return string
function M.line()
  local tabs, here = api.nvim_list_tabpages(), api.nvim_get_current_tabpage()
  local labels = vim.tbl_map(parts_of, tabs)
  local parts, room = {}, room_of(labels)
  for number, label in ipairs(labels) do
    local group = tabs[number] == here and "TabLineSel" or "TabLine"
    parts[#parts + 1] = ("%%#%s#%%%dT %s "):format(group, number, escaped(fitting(label, room - 2)))
  end
  return table.concat(parts) .. "%#TabLineFill#%T" .. (#tabs > 1 and "%=%#TabLine#%999XX" or "")
end

---Replace Neovim's own tab line, which shortens the name of a chat buffer to `c//` followed by the title and the id.
function M.adopt()
  local is_plain = vim.go.tabline == api.nvim_get_option_info2("tabline", {}).default
  if is_plain and options.display().tabline then
    api.nvim_set_option_value("tabline", OURS, { scope = "global" })
  end
end

return M
