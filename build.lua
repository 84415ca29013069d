-- Run by lazy.nvim after an install or update: builds the Python environment. Manually: `:CodeCompanion install`.
local root = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))
dofile(root .. "/lua/codecompanion/install/init.lua").build()
-- A running host has loaded the files of the previous version.
local host = package.loaded["codecompanion.host"]
if host and host.status() ~= "stopped" and host.status() ~= "failed" then
  require("codecompanion.say").line("The plugin was updated. Restart Neovim to use it; your chats are kept")
end
