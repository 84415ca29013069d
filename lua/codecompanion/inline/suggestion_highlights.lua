---Defines the highlight groups of suggestions: name, link, purpose. The help lists them with those of the chat.

local M = {}

---@type { [1]: string, [2]: string, [3]: string }[]
M.groups = {
  { "CodeCompanionGhost", "NonText", "A suggestion at the cursor" },
  { "CodeCompanionGhostHint", "Comment", "The reason for no suggestion, after the line" },
}

local GREY, GREY_OF_16 = 244, 8

---Return the attributes of a group: those of its link. If that has no colour without 'termguicolors' (as in Neovim's
---own colour scheme), use grey italics, which cannot be mistaken for code.
---@param link string
---@return vim.api.keyset.highlight
local function look(link)
  local base = vim.api.nvim_get_hl(0, { name = link, link = false })
  if base.ctermfg then
    return { link = link, default = true }
  end
  local is_large = (tonumber(vim.api.nvim_eval("&t_Co")) or 256) >= 256
  local own = { ctermfg = is_large and GREY or GREY_OF_16, cterm = { italic = true }, default = true }
  return vim.tbl_extend("force", base --[[@as table]], own)
end

---Define the groups; the user's definitions take precedence.
function M.define()
  for _, group in ipairs(M.groups) do
    vim.api.nvim_set_hl(0, group[1], look(group[2]))
  end
end

return M
