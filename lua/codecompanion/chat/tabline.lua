---The tab line as Neovim draws it, with the titles of chats in place of their ids: for who wants it, see
---|codecompanion-recipe-tabline|.

local api = vim.api

local M = {}

local LONGEST = 30

---@param text string
---@return string
local function escaped(text)
  return (text:gsub("%%", "%%%%"))
end

---What a buffer is called in a tab.
---@param bufnr integer
---@return string
function M.name(bufnr)
  local chat = vim.b[bufnr].codecompanion_chat
  if chat then
    local title = chat.title ~= "" and chat.title or "Chat"
    return require("codecompanion.chat.fit").cut(title, LONGEST)
  end
  local name = api.nvim_buf_get_name(bufnr)
  if name ~= "" then
    return vim.fn.pathshorten(vim.fn.fnamemodify(name, ":~:."))
  end
  return vim.bo[bufnr].buftype == "" and "[No Name]" or "[Scratch]"
end

---@param tab integer Handle of a tab page
---@return string
local function label(tab)
  local wins = vim.tbl_filter(function(win)
    return api.nvim_win_get_config(win).relative == ""
  end, api.nvim_tabpage_list_wins(tab))
  local changed = vim.iter(wins):any(function(win)
    return vim.bo[api.nvim_win_get_buf(win)].modified
  end)
  local marks = (#wins > 1 and tostring(#wins) or "") .. (changed and "+" or "")
  local name = M.name(api.nvim_win_get_buf(api.nvim_tabpage_get_win(tab)))
  return (" %s%s "):format(marks ~= "" and marks .. " " or "", escaped(name))
end

---For 'tabline'.
---@return string
function M.line()
  local parts, here = {}, api.nvim_get_current_tabpage()
  for number, tab in ipairs(api.nvim_list_tabpages()) do
    parts[#parts + 1] = ("%%#%s#%%%dT%s"):format(tab == here and "TabLineSel" or "TabLine", number, label(tab))
  end
  return table.concat(parts) .. "%#TabLineFill#%T"
end

return M
