---`:checkhealth codecompanion`: everything that must be there, with what to do when it is not.

local uv = vim.uv or vim.loop
local health = vim.health

local M = {}

local HOST_WAIT_MS = 8000

local function check_neovim()
  health.start("Neovim")
  local version = vim.version()
  local text = ("Neovim %d.%d.%d"):format(version.major, version.minor, version.patch)
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok(text)
  else
    health.error(text .. " is too old", "Install Neovim 0.10 or newer")
  end
  local other = require("codecompanion.conflict").other_root()
  if other then
    health.error("Another plugin has modules of the same name: " .. other, "Keep one of the two")
  end
  for _, language in ipairs({ "markdown", "markdown_inline" }) do
    if pcall(vim.treesitter.language.inspect, language) then
      health.ok("treesitter parser " .. language)
    else
      health.warn("No treesitter parser " .. language, "Chats are shown with plain Markdown syntax instead")
    end
  end
end

local function check_configuration()
  health.start("Configuration")
  local ok, problems = pcall(function()
    return require("codecompanion.config").problems()
  end)
  if not ok then
    return health.error("The configuration cannot be read: " .. tostring(problems))
  end
  for _, problem in ipairs(problems) do
    health.error(problem)
  end
  if #problems == 0 then
    health.ok("No mistakes")
  end
end

local function check_environment()
  health.start("Python environment")
  local options = require("codecompanion.config").options
  if options.host == "python3" then
    return health.info('host = "python3": the Python is chosen by Neovim, see :checkhealth provider')
  end
  local configured = (options.python or {}).host_prog
  if configured then
    return health.info("python.host_prog = " .. configured)
  end
  local environment = require("codecompanion.install").environment()
  if not environment then
    return health.warn("There is no private environment yet", {
      "Run :CodeCompanion install, or open a chat: it is made on first use",
      vim.fn.executable("uv") == 1 and "uv will be used" or "Python 3.11 or newer with venv is needed",
    })
  end
  local text = ("Python %s, made with %s: %s"):format(environment.stamp.python, environment.stamp.tool, environment.dir)
  if environment.fresh then
    health.ok(text)
  else
    health.warn(text .. " does not fit requirements.lock any more", "Run :CodeCompanion install")
  end
end

---Wait for the host, for a bounded time.
---@return string status
---@return string text
local function wait_for_host()
  local host = require("codecompanion.host")
  if require("codecompanion.install").can_start() then
    host.start()
  end
  vim.wait(HOST_WAIT_MS, function()
    return host.status() ~= "starting"
  end, 20)
  return host.status()
end

local function check_host()
  health.start("Python host")
  local status, text = wait_for_host()
  local host = require("codecompanion.host")
  if status == "stopped" then
    return health.info("Not running: it starts with the first chat, once there is an environment")
  end
  if status ~= "ready" then
    local problem = status == "starting" and ("No answer within %d s"):format(HOST_WAIT_MS / 1000) or text
    return health.error(problem, { "See :CodeCompanion log", "Try :CodeCompanion restart" })
  end
  local seen = host.inspect()
  health.ok(("Answers (pid %s, ready after %.0f ms)"):format(seen.pid or "shared", seen.ready_ms or 0))
  local report, problem
  host.request("doctor", {}, function(err, result)
    problem, report = err, result or {}
  end)
  vim.wait(HOST_WAIT_MS, function()
    return report ~= nil
  end, 20)
  if problem or not report then
    return health.error(problem or "The host did not answer the check-up in time", "See :CodeCompanion log")
  end
  for _, finding in ipairs(report) do
    local line = ("%s: %s"):format(finding.name, finding.text)
    if finding.ok then
      health.ok(line)
    else
      health.warn(line, finding.advice ~= "" and finding.advice or nil)
    end
  end
end

---Whether the keys can be found; never what they are.
local function check_keys()
  health.start("API keys")
  local adapters = require("codecompanion.adapters")
  local chosen = require("codecompanion.config").options.interactions.chat.adapter
  chosen = type(chosen) == "table" and chosen.name or chosen
  for _, name in ipairs(adapters.names()) do
    local ok, resolved = pcall(adapters.resolve, name)
    local source = ok and resolved.settings and resolved.settings.key or ""
    local used = name == chosen
    local label = used and name .. " (used for new chats)" or name
    local kind = source:match("^(%a+):")
    if source == "" then
      health.info(label .. ": needs no key")
    elseif source == "function" or kind then
      local origin = { cmd = "a command", file = "a file" }
      health.info(("%s: the key comes from %s"):format(label, origin[kind] or "a function"))
    elseif (vim.env[source] or "") ~= "" then
      health.ok(("%s: %s is set"):format(label, source))
    elseif used then
      health.warn(("%s: %s is not set"):format(label, source), "Set it before starting Neovim")
    else
      health.info(("%s: %s is not set"):format(label, source))
    end
  end
end

---@param path string
---@param what string
local function check_folder(path, what)
  vim.fn.mkdir(path, "p", 448)
  local probe = ("%s/.probe-%d"):format(path, uv.os_getpid())
  local descriptor = uv.fs_open(probe, "w", 384)
  if not descriptor then
    return health.error(("%s cannot be written: %s"):format(what, path), "Chats could not be kept; fix its permissions")
  end
  uv.fs_close(descriptor)
  uv.fs_unlink(probe)
  health.ok(("%s: %s"):format(what, path))
end

local function check_folders()
  health.start("Folders")
  pcall(check_folder, require("codecompanion.install").data_dir(), "data (chats)")
  pcall(check_folder, vim.fn.stdpath("cache") .. "/codecompanion", "cache")
  pcall(check_folder, vim.fn.stdpath("log"), "log")
end

local function check_tools()
  health.start("Programs (optional)")
  local uses = { rg = "fast search; a slower one is built in", git = "the list of the project's files" }
  for _, name in ipairs({ "rg", "git" }) do
    if vim.fn.executable(name) == 1 then
      health.ok(name)
    else
      health.info(("%s is not there: %s"):format(name, uses[name]))
    end
  end
end

function M.check()
  check_neovim()
  check_configuration()
  check_environment()
  check_keys()
  check_folders()
  check_tools()
  check_host()
end

return M
