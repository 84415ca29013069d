-- Buffer-local options of the chat buffer, and its completion sources.
if vim.b.did_ftplugin then
  return
end
vim.b.did_ftplugin = 1

vim.bo.omnifunc = "v:lua.require'codecompanion.chat.ui.complete_input'.omnifunc"
vim.bo.commentstring = "<!-- %s -->"
vim.bo.textwidth = 0
vim.bo.formatoptions = "jnlq"
vim.bo.comments = "fb:*,fb:-,fb:+,n:>"
vim.bo.formatlistpat = [[^\s*\d\+[.)]\s\+\|^\s*[-*+]\s\+\(\[[ xX]\]\s\+\)\?]]
vim.b.undo_ftplugin = "setlocal omnifunc< commentstring< textwidth< formatoptions< comments< formatlistpat<"

local register = vim.schedule_wrap(function()
  require("codecompanion.completion.registration").register()
end)
register()
-- many configurations load their completion plugin with this event
local group = vim.api.nvim_create_augroup("codecompanion.completion", { clear = false })
vim.api.nvim_clear_autocmds({ group = group, buffer = 0 }) -- of a former load
vim.api.nvim_create_autocmd("InsertEnter", { group = group, buffer = 0, callback = register })
