---Makes the private Python environment (`build.lua`, `:CodeCompanion install`, first use) and chooses the Python.
---
---Everything runs in child processes; the editor is never blocked. `uv` is used when present, else `venv` and pip with
---the hashes of requirements.lock.

local uv = vim.uv or vim.loop

-- build.lua loads this file while the plugin is not on the runtimepath yet.
local here = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))
local environment = dofile(here .. "/environment.lua")

local M = {}

M.root = environment.root
M.environment = environment.find
M.data_dir = environment.data_dir

---@alias CodeCompanion.Report fun(message: string)

local CANDIDATES = { "python3", "python3.14", "python3.13", "python3.12", "python3.11", "python" }
local PROBE = [[
import sys
try:
    import ensurepip, venv
    complete = 1
except ImportError:
    complete = 0
print(*sys.version_info[:3], complete)
]]
local ASK_VERSION = "import platform; print(platform.python_version())"
-- The user's own Python settings must not leak into the environment.
local CLEAN = {
  PYTHONPATH = "",
  PYTHONHOME = "",
  PIP_USER = "0",
  PIP_REQUIRE_VIRTUALENV = "0",
  PIP_DISABLE_PIP_VERSION_CHECK = "1",
  PIP_NO_INPUT = "1",
  VIRTUAL_ENV = "",
  UV_NO_PROGRESS = "1",
}

---What a tool's output means, first match wins.
---@type { [1]: string, [2]: string }[]
local MEANINGS = {
  { "No space left on device", "the disk is full" },
  { "os error 28", "the disk is full" },
  { "Disk quota exceeded", "the disk quota is used up" },
  { "Read%-only file system", "the data folder is read-only" },
  { "Permission denied", "the data folder may not be written" },
  { "DO NOT MATCH THE HASHES", "a downloaded package is not the one in requirements.lock" },
  { "[Hh]ash mismatch", "a downloaded package is not the one in requirements.lock" },
  { "ensurepip", "this Python cannot make virtual environments" },
  { "resolve host", "there is no network" },
  { "name resolution", "there is no network" },
  { "dns error", "there is no network" },
  { "Name or service not known", "there is no network" },
  { "getaddrinfo failed", "there is no network" },
  { "[Nn]etwork is unreachable", "there is no network" },
  { "No route to host", "there is no network" },
  { "[Cc]onnection refused", "the package index does not answer" },
  { "[Ff]ailed to establish a new connection", "there is no network" },
  { "timed out", "the package index does not answer" },
  { "error sending request", "the package index does not answer" },
  { "[Cc]ertificate", "the package index's certificate is not trusted" },
  { "[Nn]o matching distribution", "a package is not on the index, or not for this system" },
  { "[Nn]o solution found", "a package is not on the index, or not for this system" },
}

---@param output string
---@return string
local function explain(output)
  for _, meaning in ipairs(MEANINGS) do
    if output:find(meaning[1]) then
      return meaning[2]
    end
  end
  local last = vim.trim(output):match("[^\n]*$")
  return last ~= "" and last or "the tool said nothing"
end

---@return string
function M.log_path()
  return vim.fn.stdpath("log") .. "/codecompanion-install.log"
end

---@param text string
local function log(text)
  vim.fn.mkdir(vim.fs.dirname(M.log_path()), "p")
  local descriptor = uv.fs_open(M.log_path(), "a", 384) -- 0600
  if descriptor then
    uv.fs_write(descriptor, text)
    uv.fs_close(descriptor)
  end
end

---Run a command; only inside `run`. Reports what is going on, returns exit status and all output.
---@async
---@param command string[]
---@param report CodeCompanion.Report?
---@return integer code
---@return string output
local function execute(command, report)
  local thread = coroutine.running()
  local output = {}
  ---@param chunk string?
  local function take(_, chunk)
    table.insert(output, chunk)
    local name = chunk and (chunk:match("Collecting ([%w_.-]+)") or chunk:match("%+ ([%w_.-]+)=="))
    if name and report then
      vim.schedule(function()
        report("installing " .. name)
      end)
    end
  end
  local ok, err = pcall(vim.system, command, { env = CLEAN, stdout = take, stderr = take }, function(result)
    vim.schedule(function()
      local text = table.concat(output)
      log(("$ %s\n%s[status %d]\n"):format(table.concat(command, " "), text, result.code))
      coroutine.resume(thread, result.code, text)
    end)
  end)
  if not ok then
    log(("$ %s\n%s\n"):format(table.concat(command, " "), tostring(err)))
    return 127, tostring(err)
  end
  return coroutine.yield()
end

---Find a Python that can make an environment.
---@async
---@return string? python
---@return string? problem
local function find_python()
  local incomplete
  local found = {}
  for _, name in ipairs(CANDIDATES) do
    local path = vim.fn.exepath(name)
    if path ~= "" and not vim.list_contains(found, path) then
      table.insert(found, path)
      local code, output = execute({ path, "-I", "-c", PROBE })
      local major, minor, _, complete = output:match("(%d+) (%d+) (%d+) (%d)")
      if code == 0 and tonumber(major) == 3 and tonumber(minor) >= 11 then
        if complete == "1" then
          return path
        end
        incomplete = incomplete or ("%s.%s"):format(major, minor)
      end
    end
  end
  if incomplete then
    local advice = "Python %s has no venv module: install the package python%s-venv (sudo apt install python%s-venv)"
    return nil, advice:format(incomplete, incomplete, incomplete)
  end
  return nil, "No Python 3.11 or newer was found: install uv, or Python (sudo apt install python3 python3-venv)"
end

---@async
---@param dir string
---@param report CodeCompanion.Report
---@return string? tool
---@return string? problem
local function make(dir, report)
  local lock, python = environment.lock_path(), environment.python_of(dir)
  local has_uv = vim.fn.executable("uv") == 1
  local code, output, base, problem
  report(has_uv and "making the Python environment with uv" or "making the Python environment")
  if has_uv then
    code, output = execute({ "uv", "venv", "--no-project", "--python", ">=3.11", dir }, report)
  else
    base, problem = find_python()
    if not base then
      return nil, problem
    end
    code, output = execute({ base, "-I", "-m", "venv", dir }, report)
  end
  if code ~= 0 then
    return nil, "The Python environment could not be made: " .. explain(output)
  end
  report("downloading packages")
  if has_uv then
    local command = { "uv", "pip", "install", "--python", python, "--require-hashes", "--compile-bytecode", "-r", lock }
    code, output = execute(command, report)
  else
    local options = { "--require-hashes", "--retries", "1", "--timeout", "20", "--no-color", "-r", lock }
    code, output = execute(vim.list_extend({ python, "-I", "-m", "pip", "install" }, options), report)
  end
  if code ~= 0 then
    return nil, "The packages could not be installed: " .. explain(output)
  end
  return has_uv and "uv" or "pip"
end

---Check the environment in `dir` and put the stamp on it: from now on it is the one in use.
---@async
---@param dir string
---@param tool string
---@return string? problem
local function finish(dir, tool)
  local python = environment.python_of(dir)
  local command = { python, environment.root() .. "/python/codecompanion/engine/__main__.py", "--check" }
  local code, output = execute(command)
  if code ~= 0 then
    return "The new environment does not work: " .. explain(output)
  end
  local _, version = execute({ python, "-I", "-c", ASK_VERSION })
  local stamp = {
    lock = environment.lock_hash(),
    python = vim.trim(version),
    interpreter = uv.fs_realpath(python),
    tool = tool,
  }
  if not environment.write_stamp(dir, stamp) then
    return "The environment could not be completed: its folder cannot be written"
  end
end

---Remove installations nobody needs: all but the newest two and those another editor may be making right now.
---@async
---@param python string
---@param failed string?
local function clean_up(python, failed)
  local doomed = { failed }
  local complete = 0
  for _, dir in ipairs(environment.all_dirs()) do
    complete = complete + 1
    if complete > 2 and dir ~= failed then
      table.insert(doomed, dir)
    end
  end
  if #doomed > 0 then
    local remove = "import shutil, sys\nfor folder in sys.argv[1:]: shutil.rmtree(folder, ignore_errors=True)"
    execute(vim.list_extend({ python, "-I", "-c", remove }, doomed))
  end
end

local claim_path = environment.data_dir() .. "/installing"

---Let only one editor install at a time.
---@return boolean
local function claim()
  pcall(vim.fn.mkdir, environment.data_dir(), "p", 448) -- 0700
  local descriptor = uv.fs_open(claim_path, "wx", 384)
  if not descriptor then
    local holder = tonumber(environment.read(claim_path) or "")
    if holder and uv.kill(holder, 0) == 0 then
      return false
    end
    uv.fs_unlink(claim_path) -- its owner was killed
    descriptor = uv.fs_open(claim_path, "wx", 384)
  end
  if descriptor then
    uv.fs_write(descriptor, tostring(uv.os_getpid()))
    uv.fs_close(descriptor)
  end
  return true -- a folder that cannot be written is explained better by the tools
end

---@async
---@param report CodeCompanion.Report
---@return string? problem
local function install(report)
  if environment.lock_hash() == "" then
    return "requirements.lock is missing from " .. environment.root()
  end
  log(("\n%s\n"):format(os.date("%Y-%m-%d %H:%M:%S")))
  local dir = environment.new_dir()
  local ok, err = pcall(vim.fn.mkdir, vim.fs.dirname(dir), "p", 448)
  if not ok then
    return "The data folder cannot be written: " .. tostring(err):gsub("^.-: ", "")
  end
  local tool, problem = make(dir, report)
  if tool then
    report("checking the environment")
    problem = finish(dir, tool)
  end
  local python = vim.fn.exepath("python3")
  if not problem then
    clean_up(environment.python_of(dir))
  elseif python ~= "" and uv.fs_stat(dir) then
    clean_up(python, dir)
  end
  return problem
end

---@type fun(problem: string?)[]?
local waiting

---Make a new environment. While one is being made further calls wait for the same.
---@param report CodeCompanion.Report
---@param done fun(problem: string?) Called on the main loop; the environment in use is untouched when it failed
function M.run(report, done)
  if waiting then
    table.insert(waiting, done)
    return
  end
  if not claim() then
    return done("Another Neovim is installing the environment right now")
  end
  waiting = { done }
  coroutine.wrap(function()
    local ok, problem = xpcall(install, debug.traceback, report)
    if not ok then
      log(problem .. "\n")
      problem = "The installation failed: " .. problem:match("^[^\n]*")
    end
    uv.fs_unlink(claim_path)
    local callbacks = waiting
    waiting = nil
    for _, callback in ipairs(callbacks) do
      callback(problem)
    end
  end)()
end

---Show progress on the command line without a prompt and without filling `:messages`.
---@param message string
local function show(message)
  local text = "codecompanion: " .. message
  vim.api.nvim_echo({ { vim.fn.strcharpart(text, 0, math.max(vim.v.echospace - 1, 20)) } }, false, {})
end

---Install with progress on the command line.
---@param done fun(problem: string?)?
function M.run_visibly(done)
  M.run(show, function(problem)
    local say = require("codecompanion.say")
    if problem then
      say(problem .. ". Nothing was changed; details: " .. M.log_path(), vim.log.levels.ERROR)
    else
      say("the Python environment is ready")
    end
    if done then
      done(problem)
    end
  end)
end

---Say what to do after an update: a running host has read the files of the version before.
local function say_restart()
  local host = package.loaded["codecompanion.host"]
  if host and host.status() ~= "stopped" and host.status() ~= "failed" then
    require("codecompanion.say")("the plugin was updated. Restart Neovim to use it; your chats are kept")
  end
end

---The environment step of lazy.nvim, after installing and updating: runs inside its coroutine.
---@async
function M.build()
  local current = environment.find()
  if current and current.fresh then
    coroutine.yield("the Python environment is up to date")
    return say_restart()
  end
  local message, finished, problem = nil, false, nil
  M.run(function(text)
    message = text
  end, function(result)
    finished, problem = true, result
  end)
  local has_async, async = pcall(require, "lazy.async")
  while not finished do
    local text = message
    message = nil
    coroutine.yield(text)
    if has_async and async.running() then
      async.sleep(50) -- not a hot loop while pip works
    end
  end
  if problem then
    error(problem .. ". Details: " .. M.log_path(), 0)
  end
  coroutine.yield("the Python environment is ready")
  say_restart()
end

---Whether `resolve` would answer without installing anything.
---@return boolean
function M.can_start()
  local options = require("codecompanion.config").options
  local configured = (options.python or {}).host_prog
  return options.host == "python3" or configured ~= nil or environment.find() ~= nil
end

---Give the Python the host shall run with: the configured one, the private environment (made now if there is none),
---`g:python3_host_prog`.
---@param done fun(problem: string?, python: string?)
function M.resolve(done)
  local configured = (require("codecompanion.config").options.python or {}).host_prog
  if configured then
    local path = vim.fn.exepath(vim.fn.expand(configured))
    if path == "" then
      return done(("python.host_prog is not executable: %s"):format(configured))
    end
    return done(nil, path)
  end
  local current = environment.find()
  if current and current.fresh then
    return done(nil, current.python)
  end
  local provider = vim.g.python3_host_prog
  if not current and type(provider) == "string" and vim.fn.exepath(vim.fn.expand(provider)) ~= "" then
    return done(nil, vim.fn.exepath(vim.fn.expand(provider)))
  end
  M.run_visibly(function(problem)
    local made = environment.find() -- after a failure the one before, if there was one
    if made then
      return done(nil, made.python)
    end
    done(("%s. Then run :CodeCompanion install"):format(problem))
  end)
end

return M
