-- Run by lazy.nvim after installing and updating: makes the Python environment. By hand: `:CodeCompanion install`.
local root = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))
dofile(root .. "/lua/codecompanion/install/init.lua").build()
-- A running host has read the files of the version before.
local host = package.loaded["codecompanion.host"]
if host and host.status() ~= "stopped" and host.status() ~= "failed" then
  require("codecompanion.say").line("The plugin was updated. Restart Neovim to use it; your chats are kept")
end
