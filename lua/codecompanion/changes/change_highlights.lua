---Defines the highlight groups of proposed changes: name, link, purpose. The help lists them with those of the chat.

local api = vim.api

local M = {}

---@type { [1]: string, [2]: string, [3]: string }[]
M.groups = {
  { "CodeCompanionAdded", "DiffAdd", "An added line in a diff" },
  { "CodeCompanionRemoved", "DiffDelete", "A removed line in a diff" },
  { "CodeCompanionConflict", "DiagnosticWarn", "A hunk that overlaps yours" },
  { "CodeCompanionChangeHint", "Comment", "Keys, line numbers and signs" },
  { "CodeCompanionEditProgress", "DiagnosticInfo", "State of an edit in place" },
}

---Sources of the two diff colours: the first pair that the theme makes distinguishable.
local PAIRS = { { "DiffAdd", "DiffDelete" }, { "@diff.plus", "@diff.minus" }, { "Added", "Removed" } }
---Colours used if the theme makes no pair distinguishable.
local PLAIN = { { fg = "LightGreen", ctermfg = "Green" }, { fg = "LightRed", ctermfg = "Red" } }

---@class CodeCompanion.Look
---@field fg? integer
---@field bg? integer
---@field reverse? boolean

---Return the attributes of a highlight group in the current colours.
---@param name string
---@return CodeCompanion.Look
local function look_of(name)
  local hl = api.nvim_get_hl(0, { name = name, link = false })
  if vim.o.termguicolors or vim.fn.has("gui_running") == 1 then
    return { fg = hl.fg, bg = hl.bg, reverse = hl.reverse }
  end
  return { fg = hl.ctermfg, bg = hl.ctermbg, reverse = hl.cterm and hl.cterm.reverse }
end

---Return whether text with these attributes is visibly different from plain text.
---@param look CodeCompanion.Look
---@param normal CodeCompanion.Look
---@return boolean
local function is_seen(look, normal)
  return (look.bg ~= nil and look.bg ~= normal.bg) or (look.fg ~= nil and look.fg ~= normal.fg) or look.reverse == true
end

---@return { [1]: string, [2]: string }? groups
local function pair_of_theme()
  local normal = look_of("Normal")
  for _, pair in ipairs(PAIRS) do
    local added, removed = look_of(pair[1]), look_of(pair[2])
    if is_seen(added, normal) and is_seen(removed, normal) and not vim.deep_equal(added, removed) then
      return pair
    end
  end
end

---Return the theme's attributes for a group, without a foreground that equals its background.
---@param name string
---@return vim.api.keyset.highlight
local function readable(name)
  local hl = api.nvim_get_hl(0, { name = name, link = false })
  if (hl.fg and hl.fg == hl.bg) or (hl.ctermfg and hl.ctermfg == hl.ctermbg) then
    return { bg = hl.bg, ctermbg = hl.ctermbg }
  end
  return { link = name }
end

---Define the groups; the user's definitions take precedence.
function M.define()
  local pair = pair_of_theme()
  for index, group in ipairs(M.groups) do
    local spec = { link = group[2] }
    if index <= 2 then
      spec = pair and readable(pair[index]) or vim.deepcopy(PLAIN[index])
    end
    spec.default = true
    api.nvim_set_hl(0, group[1], spec)
  end
end

return M
