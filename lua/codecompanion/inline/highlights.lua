---Highlight groups of suggestions: name, link, what it is for. The help lists them with those of the chat.

local M = {}

---@type { [1]: string, [2]: string, [3]: string }[]
M.groups = {
  { "CodeCompanionGhost", "NonText", "A suggestion at the cursor" },
  { "CodeCompanionGhostHint", "Comment", "Why there is none, after the cursor's line" },
}

---Define the groups; a definition of the user's stays.
function M.define()
  for _, group in ipairs(M.groups) do
    vim.api.nvim_set_hl(0, group[1], { link = group[2], default = true })
  end
end

return M
