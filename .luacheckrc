std = "luajit"

max_line_length = 120
read_globals = { "vim" }
globals = { "vim.g", "vim.b", "vim.bo", "vim.wo", "vim.o", "vim.opt", "vim.opt_local", "vim.env", "vim.paste" }
exclude_files = { ".venv", ".nvim", "node_modules" }
