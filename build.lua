-- Run by lazy.nvim after installing and updating: makes the Python environment. By hand: `:CodeCompanion install`.
local root = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))
dofile(root .. "/lua/codecompanion/install.lua").build()
