---Makes the private Python environment (`build.lua`, `:CodeCompanion install`, first use) and chooses the Python.
---
---Everything runs in child processes; the editor is never blocked. `uv` is used when present, else `venv` and pip with
---the hashes of requirements.lock.

local uv = vim.uv or vim.loop

-- build.lua loads this file while the plugin is not on the runtimepath yet.
local here = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))
local environment = dofile(here .. "/environment.lua")
local output = dofile(here .. "/install/output.lua")
local claims = dofile(here .. "/install/claim.lua")

local M = {}

M.root = environment.root
M.environment = environment.find
M.data_dir = environment.data_dir
M.discard = environment.discard

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
local WAIT_MS = 250
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

---@return string
function M.log_path()
  return vim.fn.stdpath("log") .. "/codecompanion-install.log"
end

---@param text string
local function log(text)
  pcall(vim.fn.mkdir, vim.fs.dirname(M.log_path()), "p")
  local descriptor = uv.fs_open(M.log_path(), "a", 384) -- 0600
  if descriptor then
    uv.fs_write(descriptor, text)
    uv.fs_close(descriptor)
  end
end

---@type vim.SystemObj? The tool that runs
local tool_running

---Run a command; only inside `run`. Returns exit status and all output.
---@async
---@param command string[]
---@param read? fun(chunk: string) Gets the output as it comes, on the main loop
---@return integer code
---@return string printed
local function execute(command, read)
  local thread = coroutine.running()
  local printed = {}
  ---@param chunk string?
  local function take(_, chunk)
    table.insert(printed, chunk)
    if chunk and read then
      vim.schedule(function()
        read(chunk)
      end)
    end
  end
  local ok, child = pcall(vim.system, command, { env = CLEAN, stdout = take, stderr = take }, function(result)
    vim.schedule(function()
      tool_running = nil
      local text = table.concat(printed)
      log(("$ %s\n%s[status %d]\n"):format(table.concat(command, " "), text, result.code))
      coroutine.resume(thread, result.code, text)
    end)
  end)
  if not ok then
    log(("$ %s\n%s\n"):format(table.concat(command, " "), tostring(child)))
    return 127, tostring(child)
  end
  tool_running = child
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
      local code, printed = execute({ path, "-I", "-c", PROBE })
      local major, minor, _, complete = printed:match("(%d+) (%d+) (%d+) (%d)")
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
  local code, printed, base, problem
  report("creating the environment")
  if has_uv then
    code, printed = execute({ "uv", "venv", "--no-project", "--python", ">=3.11", dir })
  else
    base, problem = find_python()
    if not base then
      return nil, problem
    end
    code, printed = execute({ base, "-I", "-m", "venv", dir })
  end
  if code ~= 0 then
    return nil, output.explain(printed, "the Python environment was not created")
  end
  report("downloading")
  local read = output.reader(output.count(environment.read(lock) or ""), report)
  if has_uv then
    local command = { "uv", "pip", "install", "--python", python, "--require-hashes", "--compile-bytecode", "-r", lock }
    code, printed = execute(command, read)
  else
    local options = { "--require-hashes", "--retries", "1", "--timeout", "20", "--no-color", "-r", lock }
    code, printed = execute(vim.list_extend({ python, "-I", "-m", "pip", "install" }, options), read)
  end
  if code ~= 0 then
    return nil, output.explain(printed, "the Python packages were not installed")
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
  local code, printed = execute(command)
  if code ~= 0 then
    return output.explain(printed, "the new Python environment does not work")
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

---Remove installations nobody needs: those that were never finished, and all but the newest two (another editor may
---still use the last one). Only while we have the claim: nobody else is making one then.
---@async
---@param python string
local function clean_up(python)
  local doomed, kept = {}, 0
  for _, dir in ipairs(environment.all_dirs()) do
    local finished = environment.has_stamp(dir)
    kept = kept + (finished and 1 or 0)
    if not finished or kept > 2 then
      table.insert(doomed, dir)
    end
  end
  if #doomed > 0 then
    local remove = "import shutil, sys\nfor folder in sys.argv[1:]: shutil.rmtree(folder, ignore_errors=True)"
    execute(vim.list_extend({ python, "-I", "-c", remove }, doomed))
  end
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
  if not pcall(vim.fn.mkdir, vim.fs.dirname(dir), "p", 448) then
    return "The data folder cannot be written: " .. vim.fn.fnamemodify(environment.data_dir(), ":~")
  end
  local tool, problem = make(dir, report)
  if tool then
    report("checking")
    problem = finish(dir, tool)
  end
  local python = problem and vim.fn.exepath("python3") or environment.python_of(dir)
  if python ~= "" then
    clean_up(python)
  end
  return problem
end

---@class CodeCompanion.InstallProgress
---@field text string What is being done: "12 of 37 downloaded"
---@field began integer `vim.uv.now()` when it began
---@field elsewhere boolean Another Neovim does it
---@field again boolean There is an environment already, of an older version

---@type CodeCompanion.InstallProgress? The installation that runs, nil when none does
M.progress = nil

---@type { report: CodeCompanion.Report, done: fun(problem: string?) }[] Who waits for the installation that runs
local waiting = {}
---@type table<fun(), true>
local watchers = {}

---Call `watcher` whenever `progress` has changed.
---@param watcher fun()
function M.watch(watcher)
  watchers[watcher] = true
end

---@param text string
---@param elsewhere boolean
local function tell(text, elsewhere)
  M.progress.text, M.progress.elsewhere = text, elsewhere
  for _, caller in ipairs(waiting) do
    caller.report(M.describe())
  end
  for watcher in pairs(watchers) do
    watcher()
  end
end

---What is being installed, in a few words; "" when nothing is.
---@return string
function M.describe()
  local progress = M.progress
  if not progress then
    return ""
  end
  local what = progress.again and "Updating Python packages" or "Installing Python packages"
  if progress.elsewhere then
    what = "Another Neovim is installing Python packages"
  end
  return ("%s: %s"):format(what, progress.text)
end

---@param problem string?
local function finished(problem)
  local callers = waiting
  M.progress, waiting = nil, {}
  for watcher in pairs(watchers) do
    watcher()
  end
  for _, caller in ipairs(callers) do
    caller.done(problem)
  end
end

---@param claim CodeCompanion.InstallClaim
local function work(claim)
  local leaving = vim.api.nvim_create_autocmd("VimLeave", {
    desc = "End the installation of the Python packages; the unfinished folder is removed by the next",
    callback = function()
      claim.release()
      if tool_running then
        tool_running:kill("sigterm")
      end
    end,
  })
  coroutine.wrap(function()
    local ok, problem = xpcall(install, debug.traceback, function(text)
      claim.tell(text)
      tell(text, false)
    end)
    if not ok then
      log(problem .. "\n")
      problem = "The installation failed: " .. problem:match("^[^\n]*")
    elseif problem then
      log(problem .. "\n")
    end
    claim.release()
    vim.api.nvim_del_autocmd(leaving)
    finished(problem)
  end)()
end

---Install, or wait for whoever installs already: another Neovim, or the plugin manager in this one.
local function begin()
  local path = environment.data_dir() .. "/installing"
  local claim = claims.take(path)
  if claim then
    return work(claim)
  end
  local timer = assert(uv.new_timer())
  timer:start(
    0,
    WAIT_MS,
    vim.schedule_wrap(function()
      if timer:is_closing() then
        return
      end
      local holder = claims.holder(path)
      if holder then
        local text = holder.text ~= "" and holder.text or "creating the environment"
        if text ~= M.progress.text then
          tell(text, holder.pid ~= uv.os_getpid())
        end
        return
      end
      timer:close()
      local made = environment.find()
      if made and made.fresh then
        return finished()
      end
      begin() -- it failed or was killed
    end)
  )
end

---Make a new environment, or wait for the one that is being made.
---@param report CodeCompanion.Report
---@param done fun(problem: string?) Called on the main loop; the environment in use is untouched when it failed
function M.run(report, done)
  table.insert(waiting, { report = report, done = done })
  if not M.progress then
    M.progress = { text = "", began = uv.now(), elsewhere = false, again = environment.find() ~= nil }
    begin()
  end
end

---Show progress on the command line without a prompt and without filling `:messages`.
---@param message string
local function show(message)
  local text = "codecompanion: " .. message
  require("codecompanion.say").hint(text)
end

---@return string path As a person writes it
local function short_log_path()
  return vim.fn.fnamemodify(M.log_path(), ":~")
end

---`:CodeCompanion install`: install with progress on the command line.
---@param done fun(problem: string?)?
function M.run_visibly(done)
  M.run(show, function(problem)
    local say = require("codecompanion.say")
    if problem then
      say.line(
        ("%s. Nothing was changed; details: %s"):format(problem, short_log_path()),
        require("codecompanion.severity").ERROR
      )
    else
      say.line("the Python environment is ready")
    end
    if done then
      done(problem)
    end
  end)
end

---The environment step of lazy.nvim, after installing and updating: runs inside its coroutine.
---@async
function M.build()
  local current = environment.find()
  if current and current.fresh then
    coroutine.yield("the Python environment is up to date")
    return
  end
  local message, is_over, problem = nil, false, nil
  M.run(function()
    message = "Python packages: " .. M.progress.text -- lazy.nvim's window leaves about thirty columns
  end, function(result)
    is_over, problem = true, result
  end)
  local has_async, async = pcall(require, "lazy.async")
  while not is_over do
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
end

---What the environment would be made with; for `:checkhealth`.
---@param answer fun(problem: string?, tool: string)
function M.find_tool(answer)
  if vim.fn.executable("uv") == 1 then
    return answer(nil, "uv")
  end
  coroutine.wrap(function()
    local python, problem = find_python()
    answer(problem, python or "")
  end)()
end

---Whether `resolve` would answer without installing anything.
---@return boolean
function M.can_start()
  local options = require("codecompanion.config").options
  local configured = (options.python or {}).host_prog
  return options.host == "python3" or configured ~= nil or environment.find() ~= nil
end

---Whether `python` has everything the host needs.
---@param python string
---@param answer fun(fit: boolean)
local function try_provider(python, answer)
  coroutine.wrap(function()
    local check = environment.root() .. "/python/codecompanion/engine/__main__.py"
    answer(execute({ python, check, "--check" }) == 0)
  end)()
end

---Make the private environment because somebody waits for the host.
---@param done fun(problem: string?, python: string?)
---@param is_told fun(): boolean Whether the user sees it already: a chat that is shown says so itself
local function install_for_use(done, is_told)
  local function report(text)
    if not is_told() then
      show(text)
    end
  end
  M.run(report, function(problem)
    local made = environment.find() -- after a failure the one before, if there was one
    if made and problem then
      local text = "%s. The previous environment is used; details: %s"
      require("codecompanion.say").line(text:format(problem, short_log_path()), require("codecompanion.severity").WARN)
    elseif made and not is_told() then
      require("codecompanion.say").line("the Python environment is ready")
    end
    if made then
      return done(nil, made.python)
    end
    local text = "%s. Send again to retry, or run :CodeCompanion install. Details: %s"
    done(text:format(problem, short_log_path()))
  end)
end

---Give the Python the host shall run with: the configured one, the private environment, `g:python3_host_prog` if it
---has the packages; else the private environment is made now.
---@param done fun(problem: string?, python: string?)
---@param is_told fun(): boolean Whether the user sees already that something is installed
function M.resolve(done, is_told)
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
  provider = type(provider) == "string" and vim.fn.exepath(vim.fn.expand(provider)) or ""
  if current or provider == "" then
    return install_for_use(done, is_told)
  end
  try_provider(provider, function(fit)
    if fit then
      return done(nil, provider)
    end
    install_for_use(done, is_told)
  end)
end

return M
