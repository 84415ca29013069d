---Highlight groups of edits in place: name, link, what it is for. The help lists them with those of the chat.

local M = {}

---@type { [1]: string, [2]: string, [3]: string }[]
M.groups = {
  { "CodeCompanionEditAdded", "DiffAdd", "A line that an edit in place would add" },
  { "CodeCompanionEditRemoved", "DiffDelete", "A line that an edit in place would remove; − stands at its end" },
  { "CodeCompanionEditConflict", "DiagnosticWarn", "A change of an edit in place that meets one of yours" },
  { "CodeCompanionEditHint", "Comment", "The keys below a change, and how many changes there are" },
  { "CodeCompanionEditProgress", "DiagnosticInfo", "What an edit in place is doing, while the model answers" },
}

---Define the groups; a definition of the user's stays.
function M.define()
  for _, group in ipairs(M.groups) do
    vim.api.nvim_set_hl(0, group[1], { link = group[2], default = true })
  end
end

return M
