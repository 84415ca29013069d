---Builds a Python environment in child processes: with `uv` if available, otherwise with `venv`, pip and the hashes of
---the lock file. `install/init.lua` decides when.

local uv = vim.uv or vim.loop

-- build.lua loads this before the plugin is on the runtimepath.
local here = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))
local system = vim.fs.dirname(here) .. "/system"
local environment = dofile(system .. "/python_environment.lua")
local output = dofile(here .. "/installer_output.lua")
local programs = dofile(system .. "/programs.lua")

local M = {}

---@alias CodeCompanion.InstallReport fun(message: string)

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
-- The user's Python settings must not affect the environment.
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
function M.log(text)
  pcall(vim.fn.mkdir, vim.fs.dirname(M.log_path()), "p")
  local descriptor = uv.fs_open(M.log_path(), "a", 384) -- 0600
  if descriptor then
    uv.fs_write(descriptor, text)
    uv.fs_close(descriptor)
  end
end

---@type vim.SystemObj? The running tool
local tool_running

---Run a command, only inside `run`, and return its exit status and all output.
---@async
---@param command string[]
---@param read? fun(chunk: string) Called with each chunk of output, on the main loop
---@return integer code
---@return string printed
function M.execute(command, read)
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
  local options = { env = CLEAN, cwd = programs.FOLDER, stdout = take, stderr = take }
  local ok, child = pcall(vim.system, command, options, function(result)
    vim.schedule(function()
      tool_running = nil
      local text = table.concat(printed)
      M.log(("$ %s\n%s[status %d]\n"):format(table.concat(command, " "), text, result.code))
      coroutine.resume(thread, result.code, text)
    end)
  end)
  if not ok then
    M.log(("$ %s\n%s\n"):format(table.concat(command, " "), tostring(child)))
    return 127, tostring(child)
  end
  tool_running = child
  return coroutine.yield()
end

---Return the last line that a Python printed before it failed, or nil if it is Python 2, which only lacks the syntax.
---@param printed string
---@return string?
local function reason_of(printed)
  if printed:find("SyntaxError", 1, true) or printed:find("Unknown option", 1, true) then
    return nil
  end
  local lines = vim.split(vim.trim(printed), "\n", { plain = true })
  local reason = vim.trim(lines[#lines]):gsub("%.$", "")
  return reason ~= "" and reason or "it printed nothing"
end

---Find a Python that can build an environment.
---@async
---@return string? python
---@return string? problem
function M.find_python()
  local incomplete, crashed
  local found = {}
  for _, name in ipairs(CANDIDATES) do
    local path = programs.find(name)
    if path ~= "" and not vim.list_contains(found, path) then
      table.insert(found, path)
      local code, printed = M.execute({ path, "-I", "-c", PROBE })
      local major, minor, _, complete = printed:match("(%d+) (%d+) (%d+) (%d)")
      if code == 0 and tonumber(major) == 3 and tonumber(minor) >= 11 then
        if complete == "1" then
          return path
        end
        incomplete = incomplete or ("%s.%s"):format(major, minor)
      elseif code ~= 0 and not crashed then
        local reason = reason_of(printed)
        crashed = reason and ("%s does not run: %s"):format(vim.fn.fnamemodify(path, ":~"), reason)
      end
    end
  end
  if incomplete then
    local advice = "Python %s has no venv module: install the package python%s-venv (sudo apt install python%s-venv)"
    return nil, advice:format(incomplete, incomplete, incomplete)
  end
  if crashed then
    return nil, crashed .. ". Repair it, or install uv"
  end
  return nil, "No Python 3.11 or newer was found: install uv, or Python (sudo apt install python3 python3-venv)"
end

---@async
---@param dir string
---@param report CodeCompanion.InstallReport
---@return string? tool
---@return string? problem
local function make(dir, report)
  local lock, python = environment.lock_path(), environment.python_of(dir)
  local found_uv = programs.find("uv")
  local has_uv = found_uv ~= ""
  local code, printed, base, problem
  report("creating the environment")
  if has_uv then
    code, printed = M.execute({ found_uv, "venv", "--no-project", "--python", ">=3.11", dir })
  else
    base, problem = M.find_python()
    if not base then
      return nil, problem
    end
    code, printed = M.execute({ base, "-I", "-m", "venv", dir })
  end
  if code ~= 0 then
    return nil, output.explain(printed, "the Python environment was not created")
  end
  report("downloading")
  local read = output.reader(output.count(environment.read(lock) or ""), report)
  if has_uv then
    local options = { "--python", python, "--require-hashes", "--compile-bytecode", "-r", lock }
    code, printed = M.execute(vim.list_extend({ found_uv, "pip", "install" }, options), read)
  else
    local options = { "--require-hashes", "--retries", "1", "--timeout", "20", "--no-color", "-r", lock }
    code, printed = M.execute(vim.list_extend({ python, "-I", "-m", "pip", "install" }, options), read)
  end
  if code ~= 0 then
    return nil, output.explain(printed, "the Python packages were not installed")
  end
  return has_uv and "uv" or "pip"
end

---Check the environment in `dir` and stamp it, which puts it into use.
---@async
---@param dir string
---@param tool string
---@return string? problem
local function finish(dir, tool)
  local python = environment.python_of(dir)
  local command = { python, environment.root() .. "/python/codecompanion/engine/__main__.py", "--check" }
  local code, printed = M.execute(command)
  if code ~= 0 then
    return output.explain(printed, "the new Python environment does not work")
  end
  -- The host writes bytecode itself, but its first start would take twice as long; a read-only folder stays unchanged.
  M.execute({ python, "-I", "-m", "compileall", "-q", environment.root() .. "/python/codecompanion" })
  local _, version = M.execute({ python, "-I", "-c", ASK_VERSION })
  local stamp = {
    lock = environment.lock_hash(),
    python = vim.trim(version),
    interpreter = uv.fs_realpath(python),
    tool = tool,
  }
  if not environment.write_stamp(dir, stamp) then
    return "The environment is incomplete: its folder is not writable"
  end
end

---Remove obsolete installations: incomplete ones, and all but the newest two (another editor may still use the previous
---one). Call this only while holding the lock, so that no other installation is running.
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
    M.execute(vim.list_extend({ python, "-I", "-c", remove }, doomed))
  end
end

---@async
---@param report CodeCompanion.InstallReport
---@return string? problem
function M.install(report)
  if environment.lock_hash() == "" then
    return ("%s is missing from %s"):format(vim.fs.basename(environment.lock_path()), environment.root())
  end
  M.log(("\n%s\n"):format(os.date("%Y-%m-%d %H:%M:%S")))
  local dir = environment.new_dir()
  if not pcall(vim.fn.mkdir, vim.fs.dirname(dir), "p", 448) then
    return "Install failed: cannot write to " .. vim.fn.fnamemodify(environment.data_dir(), ":~")
  end
  local tool, problem = make(dir, report)
  if tool then
    report("checking")
    problem = finish(dir, tool)
  end
  local python = problem and programs.find("python3") or environment.python_of(dir)
  if python ~= "" then
    clean_up(python)
  end
  return problem
end

---Stop the running tool, because Neovim exits.
function M.stop()
  if tool_running then
    tool_running:kill("sigterm")
  end
end

return M
