---Defines the highlight groups of the chat buffer, each linked to a standard group; users can override them. The list
---is the documentation: name, link, purpose.

local M = {}

---@type { [1]: string, [2]: string, [3]: string }[]
M.groups = {
  { "CodeCompanionHeaderUser", "String", "The header of your messages" },
  { "CodeCompanionHeaderModel", "Special", "The header of the model's messages" },
  { "CodeCompanionHeaderLine", "CursorLine", "The whole line of a header" },
  { "CodeCompanionHeaderSeparator", "FloatBorder", "The line after a header" },
  { "CodeCompanionTokens", "Comment", "Token counts next to headers" },
  { "CodeCompanionHint", "Comment", "Key hints, notices and the intro text" },
  { "CodeCompanionActivity", "DiagnosticInfo", "The state, such as streaming" },
  { "CodeCompanionPending", "Comment", "sending… and queued" },
  { "CodeCompanionContext", "Comment", "The context block" },
  { "CodeCompanionContextItem", "Identifier", "A name in the context block" },
  { "CodeCompanionFold", "NONE", "The line of a closed fold" },
  { "CodeCompanionFoldMark", "Comment", "The triangle of a fold" },
  { "CodeCompanionTool", "Function", "The title of a tool call" },
  { "CodeCompanionToolSummary", "Comment", "The summary of a tool result" },
  { "CodeCompanionToolOk", "DiagnosticOk", "✓ of a tool call" },
  { "CodeCompanionToolFailed", "DiagnosticError", "✗ of a tool call" },
  { "CodeCompanionToolStopped", "DiagnosticWarn", "⊘ of a stopped tool call" },
  { "CodeCompanionToolOutput", "Comment", "The output of a tool" },
  { "CodeCompanionCleared", "DiagnosticHint", "✂: cleared tool results" },
  { "CodeCompanionCompacted", "DiagnosticHint", "The card of a compaction" },
  { "CodeCompanionUndone", "Comment", "An edit or compaction that was undone" },
  { "CodeCompanionSuperseded", "Comment", "A card replaced by a newer one" },
  { "CodeCompanionPinned", "DiagnosticInfo", "⚑: a pinned message" },
  { "CodeCompanionReasoning", "Comment", "The model's reasoning" },
  { "CodeCompanionError", "DiagnosticError", "An error message" },
  { "CodeCompanionWarning", "DiagnosticWarn", "A warning or a notice" },
  { "CodeCompanionApproval", "DiagnosticWarn", "The question of an approval" },
  { "CodeCompanionInvisible", "WarningMsg", "Invisible text in an approval" },
  { "CodeCompanionApprovalKey", "Special", "The keys of an approval" },
  { "CodeCompanionMeter", "Comment", "The context meter" },
  { "CodeCompanionMeterHigh", "DiagnosticWarn", "The meter at 80 % or more" },
  { "CodeCompanionChartSent", "Identifier", "The area in the /cost chart" },
  { "CodeCompanionChartWithout", "DiagnosticWarn", "The line in the /cost chart" },
  { "CodeCompanionChartLimit", "Comment", "Limits and axes of the /cost chart" },
  { "CodeCompanionMeterFull", "DiagnosticError", "The meter at 95 % or more" },
}

---Groups for status lines, whose background differs from that of the text. The colours of `group` are readable on the
---text background, so they are swapped here to be readable in any colour scheme, light or dark.
---@type { [1]: string, [2]: string, [3]: string }[]
M.swapped = {
  { "CodeCompanionStatusHigh", "DiagnosticWarn", "Above 80 %, swapped colours" },
  { "CodeCompanionStatusFull", "DiagnosticError", "Above 95 %, swapped colours" },
}

---Return all groups in the order of the help.
---@return { [1]: string, [2]: string, [3]: string }[]
function M.documented()
  local found = vim.list_slice(M.groups)
  vim.list_extend(found, require("codecompanion.inline.suggestion_highlights").groups)
  vim.list_extend(found, require("codecompanion.changes.change_highlights").groups)
  for _, group in ipairs(M.swapped) do
    found[#found + 1] = { group[1], "NONE", ("%s of %s"):format(group[3], group[2]) }
  end
  return found
end

---@param name string
---@return vim.api.keyset.get_hl_info
local function resolved(name)
  return vim.api.nvim_get_hl(0, { name = name, link = false })
end

local function define_swapped()
  local paper = resolved("Normal").bg
  for _, group in ipairs(M.swapped) do
    local ink = resolved(group[2])
    local spec = { reverse = true, bold = true, default = true }
    if ink.fg and paper then
      spec = { fg = paper, bg = ink.fg, ctermfg = 0, ctermbg = ink.ctermfg, bold = true, default = true }
    end
    vim.api.nvim_set_hl(0, group[1], spec)
  end
end

---Define the groups; the user's definitions take precedence.
function M.define()
  define_swapped()
  require("codecompanion.changes.change_highlights").define()
  for _, group in ipairs(M.groups) do
    local spec = group[2] == "NONE" and {} or { link = group[2] }
    spec.default = true
    vim.api.nvim_set_hl(0, group[1], spec)
  end
end

return M
