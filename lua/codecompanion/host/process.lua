---Runs a Python host, either as our own process or in the one shared by remote plugins.

local uv = vim.uv or vim.loop

local M = {}

local STDERR_LINES = 40

---@return string path Path of the remote plugin
local function plugin_file()
  return require("codecompanion.install").root() .. "/rplugin/python3/codecompanion_host.py"
end

---@param lines string[] The tail so far; the last line is incomplete
---@param chunk string[]
---@return string[]
local function append_tail(lines, chunk)
  lines[#lines] = (lines[#lines] .. chunk[1]):sub(-2000)
  vim.list_extend(lines, chunk, 2)
  return #lines > STDERR_LINES and vim.list_slice(lines, #lines - STDERR_LINES + 1) or lines
end

---Return the environment of a host: our modules on the path, and no settings of another Python, whose home would
---prevent the host from starting. Bytecode is cached, because startup would otherwise take twice as long.
---@param open table<string, string> Variables of Neovim's environment that the host may have
---@param root string
---@return table<string, string>
local function environment(open, root)
  local own = vim.tbl_extend("force", open, { PYTHONPATH = root .. "/python", PYTHONSAFEPATH = "1" })
  own.PYTHONHOME, own.PYTHONDONTWRITEBYTECODE = nil, nil
  return own
end

---Start our own host process.
---@param python string
---@param open table<string, string> Environment variables that the host may have
---@param on_exit fun(job: integer, code: integer, stderr_tail: string)
---@return integer? job
---@return string? problem
function M.launch(python, open, on_exit)
  local root = require("codecompanion.install").root()
  local stderr = { "" }
  local modules = vim.fn.stdpath("data") .. "/codecompanion/modules" -- the folder of cached byte code
  local command = { python, "-m", "codecompanion.engine", plugin_file(), modules }
  local ok, job = pcall(vim.fn.jobstart, command, {
    rpc = true,
    cwd = root, -- the editor's folder may no longer exist, and nothing may depend on it
    clear_env = true, -- the process must not inherit the keys
    env = environment(open, root),
    on_stderr = function(_, chunk)
      stderr = append_tail(stderr, chunk)
    end,
    on_exit = function(id, code)
      on_exit(id, code, vim.trim(table.concat(stderr, "\n")))
    end,
  })
  if ok and job > 0 then
    return job
  end
  return nil, ("%s cannot be started; run :CodeCompanion install"):format(python)
end

---Connect to the python3 host shared by all remote plugins (after `:UpdateRemotePlugins`).
---@return integer? channel
---@return string? problem
function M.connect_classic()
  local ours = uv.fs_realpath(plugin_file())
  local ok, plugins = pcall(vim.fn["remote#host#PluginsForHost"], "python3")
  local registered = false
  for _, plugin in ipairs(ok and plugins or {}) do
    registered = registered or uv.fs_realpath(plugin.path) == ours
  end
  if not registered then
    return nil, 'host = "python3" needs :UpdateRemotePlugins once, and a restart of Neovim'
  end
  local started, channel = pcall(vim.fn["remote#host#Require"], "python3")
  if started and channel ~= 0 then
    return channel
  end
  return nil, "The python3 provider does not start; see :checkhealth provider"
end

return M
