---Where prompt files of the user are.

local M = {}

---@return string
function M.own()
  return vim.fn.stdpath("config") .. "/codecompanion/prompts"
end

---Folders of the configuration, absolute.
---@return string[]
function M.configured()
  return vim.tbl_map(function(folder)
    return vim.fn.fnamemodify(vim.fs.normalize(folder), ":p")
  end, require("codecompanion.config").options.prompt_library.markdown.dirs)
end

return M
