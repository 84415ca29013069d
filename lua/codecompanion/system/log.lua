---Writes the log file of the host, which also stores messages that do not fit on the command line.

local uv = vim.uv or vim.loop

local M = {}

---@return string
function M.path()
  return vim.fn.stdpath("log") .. "/codecompanion.log"
end

---@param line string
function M.append(line)
  pcall(vim.fn.mkdir, vim.fs.dirname(M.path()), "p")
  local descriptor = uv.fs_open(M.path(), "a", 384) -- 0600
  if descriptor then
    uv.fs_write(descriptor, os.date("%Y-%m-%d %H:%M:%S ") .. line .. "\n")
    uv.fs_close(descriptor)
  end
end

return M
