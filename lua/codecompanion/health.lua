---`:checkhealth codecompanion`: checks all requirements and names a remedy for each missing one. The sections are in
---display order, so the file is longer than others.

local uv = vim.uv or vim.loop
local health = vim.health

local M = {}

local HOST_WAIT_MS = 8000
local TOOL_WAIT_MS = 3000

local function check_neovim()
  health.start("Neovim")
  local version = vim.version()
  local text = ("Neovim %d.%d.%d"):format(version.major, version.minor, version.patch)
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok(text)
  else
    health.error(text .. " is too old", "Install Neovim 0.10 or newer")
  end
  if vim.fn.has("win32") == 1 then
    health.error("Native Windows is not supported: tools, commands and the code index do not work", "Run Neovim in WSL")
  end
  local other = require("codecompanion.commands.conflict").other_root()
  if other then
    health.error("Another plugin has modules of the same name: " .. other, "Keep one of the two")
  end
  if require("codecompanion.system.manual_tags").exist() then
    health.ok("The manual has its help tags")
  else
    local advice = "Run :CodeCompanion help, which creates them, or :helptags ALL"
    health.info("`:help codecompanion` finds nothing: there are no help tags. " .. advice)
  end
  for _, language in ipairs({ "markdown", "markdown_inline" }) do
    if pcall(vim.treesitter.language.inspect, language) then
      health.ok("treesitter parser " .. language)
    else
      health.warn("No treesitter parser " .. language, "Chats are shown with plain Markdown syntax instead")
    end
  end
end

---Report the options that shape requests.
---@param opts table `interactions.chat.opts`
---@return string
local function context_values(opts)
  local policy = opts.policy
  local found = require("codecompanion.config").findings()
  local sentence = ("Policy %s is stopped; "):format(tostring(policy))
  local instead
  for _, problem in ipairs(vim.list_extend(found.failures, found.problems)) do
    local _, last = problem:find(sentence, 1, true)
    instead = instead or last and problem:match("^(.-) is used instead", last + 1)
  end
  if instead then
    policy = ("%s (stopped; %s is used)"):format(policy, instead)
  end
  if type(policy) == "table" then
    policy = vim.inspect(policy, { newline = " ", indent = "" })
  end
  local sections = opts.context_packet.enabled_sections
  return ("policy = %s, response_style = %s, context_packet = %s"):format(
    policy,
    opts.response_style or "set by the policy (`kodacode` asks for brief replies)",
    #sections > 0 and table.concat(sections, ", ") or "off"
  )
end

---Wait for the host for a limited time, unless its packages are being installed.
---@return string status
---@return string text
local function wait_for_host()
  local host, install = require("codecompanion.host"), require("codecompanion.install")
  if install.can_start() then
    host.start()
  end
  vim.wait(HOST_WAIT_MS, function()
    return host.status() ~= "starting" or install.progress ~= nil
  end, 20)
  return host.status()
end

local function check_configuration()
  health.start("Configuration")
  local status = wait_for_host() -- the host checks adapters and policies
  local ok, found = pcall(function()
    return require("codecompanion.config").findings()
  end)
  if not ok then
    return health.error("The configuration cannot be read: " .. tostring(found))
  end
  for _, problem in ipairs(require("codecompanion.config.findings").problems(found)) do
    health.error(problem)
  end
  for _, failure in ipairs(found.failures) do
    health.warn("Your own code failed: " .. failure)
  end
  local of_prompts
  if status == "ready" then
    require("codecompanion.prompt_library").read_problems(function(problems)
      of_prompts = problems
    end)
    vim.wait(TOOL_WAIT_MS, function()
      return of_prompts ~= nil
    end, 20)
  end
  for _, problem in ipairs(of_prompts or require("codecompanion.prompt_library").problems()) do
    health.warn(problem)
  end
  for _, name in ipairs(found.old_names) do
    health.warn(name)
  end
  if #found.problems == 0 then
    local limits = status == "ready" and ""
      or "; the Python process checks adapters and policies in more detail once it runs"
    health.ok("No mistakes" .. limits)
  end
  if #found.foreign > 0 then
    health.info("Options that do nothing here:\n- " .. table.concat(found.foreign, "\n- "))
  end
  if #found.moves > 0 then
    local moves = require("codecompanion.config.findings").moves(found)
    health.info("Options of codecompanion.nvim under another name:\n- " .. table.concat(moves, "\n- "))
  end
  health.info(context_values(require("codecompanion.config").options.interactions.chat.opts))
end

---Report whether a missing environment can be built here, and when.
---@param install table
local function check_what_can_be_made(install)
  local problem, tool
  install.find_tool(function(found_problem, found_tool)
    problem, tool = found_problem, found_tool
  end)
  vim.wait(TOOL_WAIT_MS, function()
    return tool ~= nil
  end, 20)
  if problem then
    return health.error(problem, "Then open a chat, or run :CodeCompanion install")
  end
  local with = tool and (" with " .. tool) or ""
  health.warn("The Python packages are not installed yet", {
    ("The first chat installs them%s; to do it now run :CodeCompanion install"):format(with),
  })
end

local function check_environment()
  health.start("Python environment")
  health.info("Command line: " .. require("codecompanion.install").root() .. "/bin/codecompanion")
  local options = require("codecompanion.config").options
  if options.host == "python3" then
    return health.info('host = "python3": Neovim chooses the Python, see :checkhealth provider')
  end
  local configured = (options.python or {}).host_prog
  if configured then
    return health.info("python.host_prog = " .. configured)
  end
  local install = require("codecompanion.install")
  if install.progress then
    health.info(install.describe())
  end
  local environment = install.environment()
  if not environment then
    return check_what_can_be_made(install)
  end
  local stamp = environment.stamp
  local text = ("Python %s, created with %s: %s"):format(stamp.python, stamp.tool, environment.dir)
  if environment.fresh then
    health.ok(text)
  else
    local advice = "The next chat tries to update it; :CodeCompanion install updates it now"
    health.warn(text .. " was created for an older version of the plugin", advice)
  end
end

---Return the names of host findings that other sections already show: ripgrep, and Python if the private environment is
---used.
---@return table<string, true>
local function shown_elsewhere()
  local options = require("codecompanion.config").options
  local is_ours = options.host ~= "python3" and not (options.python or {}).host_prog
  return { ripgrep = true, python = is_ours and require("codecompanion.install").environment() ~= nil or nil }
end

local function check_host()
  health.start("Python process")
  local status, text = wait_for_host()
  local host = require("codecompanion.host")
  if status == "stopped" then
    return health.info("Not running: it starts with the first chat, once the environment exists")
  end
  if status == "starting" and require("codecompanion.install").progress then
    return health.info("Not running yet: it starts when the packages are installed")
  end
  if status ~= "ready" then
    local problem = status == "starting" and ("No answer within %d s"):format(HOST_WAIT_MS / 1000) or text
    return health.error(problem, { "See :CodeCompanion log", "Run :CodeCompanion restart, or :CodeCompanion install" })
  end
  local seen = host.inspect()
  health.ok(("Running (pid %s, ready after %.0f ms)"):format(seen.pid or "shared", seen.ready_ms or 0))
  local report, problem
  host.request("doctor", {}, function(err, result)
    problem, report = err, result or {}
  end)
  vim.wait(HOST_WAIT_MS, function()
    return report ~= nil
  end, 20)
  if problem or not report then
    return health.error(problem or "The Python process did not answer in time", "See :CodeCompanion log")
  end
  local is_shown = shown_elsewhere()
  report = vim.tbl_filter(function(finding)
    return not (finding.ok and is_shown[finding.name])
  end, report)
  for _, finding in ipairs(report) do
    local line = ("%s: %s"):format(finding.name, finding.text)
    if finding.ok then
      health.ok(line)
    else
      health.warn(line, finding.advice ~= "" and finding.advice or nil)
    end
  end
  local trust = require("codecompanion.pages.trust_page").examine(HOST_WAIT_MS)
  if trust then
    health.info("workspace trust: " .. trust)
  end
  local index, is_usable = require("codecompanion.pages.index_page").examine(HOST_WAIT_MS)
  if is_usable then
    health.info("code index: " .. index)
  elseif index then
    health.warn("code index: " .. index, "Questions are answered without it; :CodeCompanion index tries again")
  end
end

---Return where an adapter's key is configured and whether it exists, never the key itself.
---@param settings CodeCompanion.AdapterSettings
---@return boolean? there nil if only the host can know
---@return string text
local function key_of(settings)
  local source = settings.key
  local kind, rest = source:match("^(%a+):(.*)$")
  local login = require("codecompanion.adapters.logins")[settings.kind]
  if login then
    local there = login.is_there()
    return there, there and "a login was found" or ("not logged in; run :CodeCompanion login %s"):format(settings.name)
  elseif settings.client ~= "" then
    local clouds = require("codecompanion.adapters.clouds")
    local cloud = clouds.of(settings.client)
    if not cloud then
      return false, "opts.client is unknown"
    end
    local there = clouds.has_credentials(cloud)
    return there, there and cloud.whose .. " were found" or cloud.needs
  elseif source == "" then
    return true, "needs no key"
  elseif source == "function" then
    return nil, "the key comes from a function"
  elseif kind == "literal" then
    return false, ("env.api_key is `%s…`, which is not an environment variable"):format(rest)
  elseif kind == "cmd" then
    return nil, "the key comes from a command"
  elseif kind == "file" then
    local path = vim.fs.normalize(vim.trim(rest))
    local there = vim.fn.filereadable(path) == 1
    return there, ("the key comes from the file %s%s"):format(path, there and "" or ", which cannot be read")
  end
  local there = (vim.env[source] or "") ~= ""
  return there, ("%s is %s"):format(source, there and "set" or "not set")
end

---@param settings CodeCompanion.AdapterSettings
---@return string text Whether its official client is installed, or "" if it needs none
local function client_of(settings)
  local install = require("codecompanion.install")
  if settings.transport ~= "sdk" then
    return ""
  end
  local instruction = install.manual_instruction("sdk")
  if instruction then
    return "; if its official client is missing from your own Python, " .. instruction
  end
  local made = require("codecompanion.system.python_environment").wants("sdk") and install.environment()
  return made and made.fresh and "; its official client is installed"
    or "; its official client is installed when the Python process starts"
end

---Return the adapters that the configuration mentions or uses.
---@return table<string, string> purposes By adapter name
local function configured_adapters()
  local config = require("codecompanion.config")
  local reference = require("codecompanion.config.settings_for_host").adapter_reference
  local found = {}
  for name, entry in pairs(vim.tbl_get(config.user, "adapters", "http") or {}) do
    if name == "extend" and type(entry) == "table" then
      for extended in pairs(entry) do
        found[extended] = ""
      end
    elseif name ~= "opts" then
      found[name] = ""
    end
  end
  local chat = config.options.interactions.chat
  local writer = vim.tbl_get(chat.opts, "context_management", "compaction", "adapter")
  if writer then
    found[(reference(writer))] = " (writes summaries)"
  end
  found[(require("codecompanion.adapters.default_adapter").reference(config.options))] = " (used for new chats)"
  return found
end

---Report which adapter new chats use if the configuration names none, and why.
local function check_choice()
  local choice, options = require("codecompanion.adapters.default_adapter"), require("codecompanion.config").options
  if not choice.is_automatic(options) then
    return
  end
  local made
  choice.make(options, function(found)
    made = found
  end)
  vim.wait(TOOL_WAIT_MS, function()
    return made ~= nil
  end, 20)
  if not made or not made.is_usable then
    local advice = ":CodeCompanion adapter shows what each adapter needs"
    return health.warn("New chats have no model: no key, login or local server was found", advice)
  end
  local name = require("codecompanion.text.model_name")(made.name, made.model)
  local fix = "to change it, set interactions.chat.adapter, or the order in adapters.http.opts.order"
  local why = made.why ~= "" and made.why or "you chose it"
  health.ok(("Chosen for new chats: %s, because %s; %s"):format(name, why, fix))
end

---Report the URL and key of each adapter that is configured or in use; for the others, report only which keys exist.
local function check_adapters()
  health.start("Adapters")
  check_choice()
  local adapters, http = require("codecompanion.adapters"), require("codecompanion.config").options.adapters.http
  local configured = configured_adapters()
  local ready, lacking = {}, {}
  for _, name in ipairs(adapters.names(http)) do
    local ok, resolved = pcall(adapters.resolve, name, http)
    local settings = ok and resolved.settings
    if settings then
      local there, text = key_of(settings)
      local purpose = configured[name]
      if purpose then
        -- Omit passwords and tokens from the URL.
        local address = settings.address:gsub("?.*$", ""):gsub("//[^/]*@", "//")
        local where = address ~= "" and ", " .. address or ""
        local line = ("%s%s: %s%s; %s%s"):format(name, purpose, settings.kind, where, text, client_of(settings))
        if there == false and purpose ~= "" then
          local has_login = require("codecompanion.adapters.logins")[settings.kind] ~= nil or settings.client ~= ""
          local advice = has_login and "Log in" or "Set it before starting Neovim"
          health.warn(line, advice .. ", or choose another one: :CodeCompanion adapter")
        elseif there then
          health.ok(line)
        else
          health.info(line)
        end
      elseif settings.key ~= "" then
        table.insert(there and ready or lacking, ("%s (%s)"):format(name, settings.key))
      end
    end
  end
  if #ready > 0 then
    health.ok("Built in, key set: " .. table.concat(ready, ", "))
  end
  if #lacking > 0 then
    health.info("Built in, no key: " .. table.concat(lacking, ", "))
  end
end

local function check_completion()
  health.start("Completion at the cursor")
  local options = require("codecompanion.config").options.completion
  local loaded = package.loaded["codecompanion.inline.completion_status"]
  if not options.enabled and not (loaded and loaded.is_on) then
    return health.info("Off; completion = { enabled = true } or :CodeCompanion complete on switches it on")
  end
  health.info(require("codecompanion.inline.completion_status").settings(options))
  if options.display == "lsp" and not vim.lsp.inline_completion then
    health.warn('display = "lsp" needs Neovim 0.12; suggestions are shown as ghost text')
  end
  if
    options.display == "ghost"
    and next(options.keymaps) == nil
    and vim.fn.hasmapto("<Plug>(CodeCompanionComplete", "i") == 0
  then
    health.info("No key inserts a suggestion: see `:help codecompanion-complete-plug`, or use your own mapping")
  end
end

local function check_mcp()
  health.start("MCP servers")
  if not require("codecompanion.config").options.mcp.enabled then
    return health.info("Off: mcp.enabled = false")
  elseif wait_for_host() ~= "ready" then
    return health.info("Listed once the Python process runs")
  end
  local lines = require("codecompanion.pages.mcp_page").examine(HOST_WAIT_MS)
  if not lines then
    return health.warn("The Python process did not answer in time", "See :CodeCompanion log")
  elseif #lines == 0 then
    return health.info("None configured (`:help codecompanion-mcp`)")
  end
  for _, line in ipairs(lines) do
    health[line.level](line.text, line.advice)
  end
end

---@param path string
---@param what string
---@param lost string Feature that does not work without the folder
local function check_folder(path, what, lost)
  pcall(vim.fn.mkdir, path, "p", 448)
  local probe = ("%s/.probe-%d"):format(path, uv.os_getpid())
  local descriptor = uv.fs_open(probe, "w", 384)
  if not descriptor then
    return health.error(("%s cannot be written: %s"):format(what, path), lost .. "; fix its permissions")
  end
  uv.fs_close(descriptor)
  uv.fs_unlink(probe)
  local status = uv.fs_stat(path)
  local others = status and bit.band(status.mode, 18) ~= 0 -- group or others may write
  if others and bit.band(status.mode, 512) == 0 then -- not sticky
    local fix = ("`chmod go-w %s`, unless you share it on purpose"):format(path)
    return health.warn(("%s: other users can replace files in %s"):format(what, path), fix)
  end
  health.ok(("%s: %s"):format(what, path))
end

local function check_folders()
  health.start("Folders")
  local install, cache = require("codecompanion.install"), vim.fn.stdpath("cache") .. "/codecompanion"
  check_folder(install.data_dir(), "data (chats)", "Chats cannot be saved")
  check_folder(cache, "cache (code indexes)", "Questions and suggestions work without a code index")
  check_folder(vim.fn.stdpath("log"), "log", "Nothing can be logged")
end

local function check_tools()
  health.start("Programs (optional)")
  local uses = {
    rg = { "searches fast", "a slower search is built in" },
    git = {
      "lists the project's files, and merges reverts with later edits",
      "all files are listed, and a change can be reverted only if the file was not edited since",
    },
  }
  for _, name in ipairs({ "rg", "git" }) do
    if require("codecompanion.system.programs").find(name) ~= "" then
      health.ok(("%s: %s"):format(name, uses[name][1]))
    else
      health.info(("%s was not found: %s"):format(name, uses[name][2]))
    end
  end
end

function M.check()
  check_neovim()
  check_configuration()
  check_environment()
  check_adapters()
  check_completion()
  check_mcp()
  check_folders()
  check_tools()
  check_host()
end

return M
