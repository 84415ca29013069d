---Installs the private Python environment (`build.lua`, `:CodeCompanion install`, first use), reports progress and
---chooses the host's Python. All work is done in child processes (`make_environment.lua`): the editor never blocks.

local uv = vim.uv or vim.loop

-- build.lua loads this file before the plugin is on the runtimepath.
local here = vim.fs.dirname(debug.getinfo(1, "S").source:sub(2))
local system = vim.fs.dirname(here) .. "/system"
local environment = dofile(system .. "/python_environment.lua")
local make = dofile(here .. "/make_environment.lua")
local claims = dofile(here .. "/installation_lock.lua")
local programs = dofile(system .. "/programs.lua")

local M = {}

M.root = environment.root
M.environment = environment.find
M.data_dir = environment.data_dir
M.discard = environment.discard
M.extras = environment.EXTRAS
M.log_path = make.log_path

local WAIT_MS = 250

---@class CodeCompanion.InstallProgress
---@field text string Current step: "12 of 37 downloaded"
---@field began integer Start time (`vim.uv.now()`)
---@field elsewhere boolean Another Neovim is installing
---@field again boolean An environment of an older version exists

---@type CodeCompanion.InstallProgress? The running installation, or nil
M.progress = nil

---Callers that wait for the running installation.
---@type { report: CodeCompanion.InstallReport, done: fun(problem: string?) }[]
local waiting = {}
---@type table<fun(), true>
local watchers = {}

---@type table<string, { subject: string, why: string }> Extras that the configuration has enabled in this Neovim
local needed = {}

---Call `watcher` after each change of `progress`.
---@param watcher fun()
---@return fun() unwatch
function M.watch(watcher)
  watchers[watcher] = true
  return function()
    watchers[watcher] = nil
  end
end

local is_on_line = false -- the command line shows the progress

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

---Return a short description of the running installation, or "".
---@return string
function M.describe()
  local progress = M.progress
  if not progress then
    return ""
  end
  local what = progress.again and "Updating Python packages" or "Installing Python packages"
  if progress.elsewhere then
    what = "Another Neovim is installing Python packages"
  elseif progress.again and next(needed) then
    what = "Installing Python packages for " .. (needed.mcp or needed.sdk).subject
  end
  return ("%s: %s"):format(what, progress.text)
end

---Return why the configuration requires more packages, one sentence for each extra.
---@return string[]
function M.reasons()
  local reasons = vim.tbl_map(function(one)
    return one.why
  end, vim.tbl_values(needed))
  table.sort(reasons)
  return reasons
end

---@param problem string?
local function finished(problem)
  local callers = waiting
  is_on_line = false
  M.progress, waiting, needed = nil, {}, {}
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
    desc = "Stop the installation of Python packages; the next one removes the unfinished folder",
    callback = function()
      claim.release()
      make.stop()
    end,
  })
  coroutine.wrap(function()
    local ok, problem = xpcall(make.install, debug.traceback, function(text)
      claim.tell(text)
      tell(text, false)
    end)
    if not ok then
      make.log(problem .. "\n")
      problem = "Install failed: " .. problem:match("^[^\n]*")
    elseif problem then
      make.log(problem .. "\n")
    end
    claim.release()
    vim.api.nvim_del_autocmd(leaving)
    finished(problem)
    -- A plugin manager may build before the plugin is on 'runtimepath'; it creates the tags itself.
    local has_tags, manual_tags = pcall(require, "codecompanion.system.manual_tags")
    if has_tags and not problem then
      manual_tags.create()
    end
  end)()
end

---Install, or wait for an installation by another Neovim or by the plugin manager in this one.
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
      begin() -- the other installation failed or was killed
    end)
  )
end

---Build a new environment, or wait for the running installation.
---@param report CodeCompanion.InstallReport
---@param done fun(problem: string?) Called on the main loop; after a failure the environment in use is unchanged
function M.run(report, done)
  table.insert(waiting, { report = report, done = done })
  if not M.progress then
    M.progress = { text = "", began = uv.now(), elsewhere = false, again = environment.find() ~= nil }
    begin()
  end
end

---Return whether a visible chat shows the progress; set when the chat is loaded.
---@type fun(): boolean
M.is_on_screen = function()
  return false
end

---Remove the progress from the command line, because it is shown elsewhere.
function M.clear_line()
  if is_on_line then
    is_on_line = false
    require("codecompanion.say").nothing()
  end
end

---Show progress on the command line without a prompt and without filling `:messages`, unless a chat shows it.
---@param message string
local function show(message)
  if M.is_on_screen() then
    return M.clear_line()
  end
  is_on_line = true
  local say = require("codecompanion.say")
  say.hint((say.fitting({ message }, math.max(vim.v.echospace - 1, 1))))
end

---Command that shows the installation log; unlike the path of the log, it is never split at the edge of a window.
local SHOW_LOG = ":CodeCompanion log install"

---Return instructions for installing the packages of an extra, if the user has to install them.
---@param extra string A key of `environment.EXTRAS`
---@return string? instruction nil if `:CodeCompanion install` installs them
function M.manual_instruction(extra)
  local python = (require("codecompanion.config").options.python or {}).host_prog
  local text = "run `%s -m pip install %s`, then :CodeCompanion restart"
  return python and text:format(python, environment.EXTRAS[extra])
end

---Run `:CodeCompanion install {extra}`: enable the extra permanently and install its packages.
---@param extra string A key of `environment.EXTRAS`
---@param done fun(problem: string?)?
function M.add(extra, done)
  local say, severity = require("codecompanion.say"), require("codecompanion.severity")
  local instruction = M.manual_instruction(extra)
  if instruction then
    local short = ("Run pip install %s in your own Python (host_prog)"):format(environment.EXTRAS[extra])
    return say.line({ "python.host_prog is your own Python: " .. instruction, instruction, short }, severity.WARN)
  end
  local had = environment.wants(extra)
  if not had and not environment.want(extra, true) then
    local folder = vim.fn.fnamemodify(environment.data_dir(), ":~")
    return say.line("Install failed: cannot write to " .. folder, severity.ERROR)
  end
  M.run_visibly(function(problem)
    if problem and not had then
      environment.want(extra, false)
    end
    if done then
      done(problem)
    end
  end)
end

---Run `:CodeCompanion install` with progress on the command line.
---@param done fun(problem: string?)?
function M.run_visibly(done)
  M.run(show, function(problem)
    local say = require("codecompanion.say")
    if problem then
      local details = "; details: " .. SHOW_LOG
      local texts = { problem .. ". Nothing was changed" .. details, problem .. details, problem .. "." }
      say.line(texts, require("codecompanion.severity").ERROR)
    else
      say.line("the Python environment is ready")
    end
    if done then
      done(problem)
    end
  end)
end

---Build the environment for lazy.nvim after an install or update; runs in its coroutine.
---@async
function M.build()
  local current = environment.find()
  if current and current.fresh then
    coroutine.yield("the Python environment is up to date")
    return
  end
  local message, is_over, problem = nil, false, nil
  M.run(function()
    message = "Python packages: " .. M.progress.text -- lazy.nvim's window has about thirty columns left
  end, function(result)
    is_over, problem = true, result
  end)
  local has_async, async = pcall(require, "lazy.async")
  while not is_over do
    local text = message
    message = nil
    coroutine.yield(text)
    if has_async and async.running() then
      async.sleep(50) -- avoid a busy loop while pip works
    end
  end
  if problem then
    error(problem .. ". Details: " .. M.log_path(), 0)
  end
  coroutine.yield("the Python environment is ready")
end

---Find the tool that would build the environment, for `:checkhealth`.
---@param answer fun(problem: string?, tool: string)
function M.find_tool(answer)
  if programs.find("uv") ~= "" then
    return answer(nil, "uv")
  end
  coroutine.wrap(function()
    local python, problem = make.find_python()
    answer(problem, python or "")
  end)()
end

---Return whether `resolve` can answer without installing anything.
---@return boolean
function M.can_start()
  local options = require("codecompanion.config").options
  local configured = (options.python or {}).host_prog
  return options.host == "python3" or configured ~= nil or environment.find() ~= nil
end

---Check whether `python` has everything the host needs.
---@param python string
---@param answer fun(fit: boolean)
local function try_provider(python, answer)
  coroutine.wrap(function()
    local check = environment.root() .. "/python/codecompanion/engine/__main__.py"
    answer(make.execute({ python, check, "--check" }) == 0)
  end)()
end

---Build the private environment because a request waits for the host.
---@param done fun(problem: string?, python: string?)
---@param is_told fun(): boolean Whether a visible chat already shows the problem
local function install_for_use(done, is_told)
  local function report(text)
    if not is_told() then
      show(text)
    end
  end
  M.run(report, function(problem)
    local made = environment.find() -- after a failure, the previous one if there was one
    if made and problem then
      local text = "%s. The previous environment is used; details: %s"
      require("codecompanion.say").line(text:format(problem, SHOW_LOG), require("codecompanion.severity").WARN)
    elseif made and not is_told() then
      require("codecompanion.say").line("the Python environment is ready")
    end
    if made then
      return done(nil, made.python)
    end
    local text = "%s. Send again to retry, or run :CodeCompanion install. Details: %s"
    done(text:format(problem, SHOW_LOG))
  end)
end

---Return whether MCP servers are configured, which require further packages.
---@return boolean
local function are_mcp_servers_configured()
  local mcp = require("codecompanion.config").options.mcp or {}
  for _, server in pairs(mcp.servers or {}) do
    if server and server.enabled ~= false then
      return mcp.enabled ~= false
    end
  end
  return false
end

---Find the Python for the host: the configured one, the private environment, or `g:python3_host_prog` if it has the
---packages; otherwise build the private environment now.
---@param done fun(problem: string?, python: string?)
---@param is_told fun(): boolean Whether the user already sees the installation
function M.resolve(done, is_told)
  local configured = (require("codecompanion.config").options.python or {}).host_prog
  if configured then
    local path = programs.find(configured)
    if path == "" then
      return done(("python.host_prog is not executable: %s"):format(configured))
    end
    return done(nil, path)
  end
  if not environment.wants("mcp") and are_mcp_servers_configured() then
    environment.want("mcp", true) -- the environment now differs from its lock file
    needed.mcp = { subject = "MCP", why = "Your MCP servers need more Python packages." }
  end
  if not environment.wants("sdk") and require("codecompanion.install.official_clients").are_needed() then
    environment.want("sdk", true)
    needed.sdk = { subject = "an adapter", why = "An adapter needs the packages of its official client." }
  end
  local current = environment.find()
  if current and current.fresh then
    return done(nil, current.python)
  end
  local provider = vim.g.python3_host_prog
  provider = type(provider) == "string" and programs.find(provider) or ""
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
