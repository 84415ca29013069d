---Returns the folders of the user's prompt files.

local M = {}

---@return string
function M.own()
  return vim.fn.stdpath("config") .. "/codecompanion/prompts"
end

---Return the configured folders as absolute paths.
---@return string[]
function M.configured()
  return vim.tbl_map(function(folder)
    return vim.fn.fnamemodify(vim.fs.normalize(folder), ":p")
  end, require("codecompanion.config").options.prompt_library.markdown.dirs)
end

return M
