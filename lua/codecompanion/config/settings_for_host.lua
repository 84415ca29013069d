---Builds the settings sent to the host (`python/codecompanion/settings.py`); functions are evaluated or omitted.

local adapters = require("codecompanion.adapters")
local choice = require("codecompanion.adapters.default_adapter")
local plain = require("codecompanion.values.plain")

---@class CodeCompanion.SystemPromptContext
---@field default_system_prompt string Placeholder that is replaced by the built-in prompt
---@field language string
---@field adapter string
---@field model string "" for the adapter's default
---@field cwd string
---@field date string
---@field nvim_version string
---@field os string

---Placeholder for the built-in prompt, which only the host has (`settings.DEFAULT_PROMPT_MARK`).
local DEFAULT_PROMPT = "${default_system_prompt}"

local M = {}

---@class CodeCompanion.Evaluation
---@field problems string[]
local Evaluation = {}
Evaluation.__index = Evaluation

---@param path string Key path of the option
---@param value any The option; called if it is a function
---@param expected string|string[] Type(s) of the result
---@param fallback any Used if the function fails
---@param ... any Arguments
---@return any
function Evaluation:value(path, value, expected, fallback, ...)
  if type(value) ~= "function" then
    return value
  end
  local ok, answer = pcall(value, ...)
  if not ok then
    table.insert(self.problems, ("%s: the function failed: %s"):format(path, answer))
    return fallback
  end
  local types = type(expected) == "table" and expected or { expected }
  if not vim.list_contains(types, type(answer)) then
    local text = "%s: the function returned %s; expected %s"
    table.insert(self.problems, text:format(path, type(answer), table.concat(types, " or ")))
    return fallback
  end
  local wrong = plain.problem(answer, path)
  if wrong then
    table.insert(self.problems, (wrong:gsub(": ", ": in the function's result: ", 1)))
    return fallback
  end
  return answer
end

---Report `${…}` names that look like a placeholder in a system prompt or a prompt, but are not replaced here.
---@param path string
---@param text any
function Evaluation:placeholders(path, text)
  for name in (type(text) == "string" and text or ""):gmatch("%${([%w_%.]+)}") do
    local written = ("${%s}"):format(name)
    local near = require("codecompanion.values.nearest").word(name, { DEFAULT_PROMPT:sub(3, -2) })
    if written ~= DEFAULT_PROMPT and (near or name:find("^%a[%w_]*%.%a")) then
      local text_of = "%s: %s is not a placeholder here and is left as it is; expected %s"
      table.insert(self.problems, text_of:format(path, written, DEFAULT_PROMPT))
    end
  end
end

---@param value string|{ name: string, model?: string }
---@return string name
---@return string model "" for the adapter's default
function M.adapter_reference(value)
  if type(value) == "table" then
    return value.name, value.model or ""
  end
  return value, ""
end

---@param map table<string, any>
---@return table<string, any>
local function object(map)
  return next(map) == nil and vim.empty_dict() or map
end

---Return the user's `context_management` without functions, which only Lua can evaluate.
---@param given table
---@return table
local function static(given)
  local kept = {}
  for key, value in pairs(given) do
    if type(value) == "table" and not vim.islist(value) then
      local inner = static(value)
      kept[key] = next(inner) ~= nil and inner or nil
    elseif type(value) ~= "function" then
      kept[key] = value
    end
  end
  return kept
end

---@param evaluation CodeCompanion.Evaluation
---@param options table
---@return string|vim.NIL
local function system_prompt(evaluation, options)
  local language = options.opts.language
  local prompt = options.interactions.chat.opts.system_prompt
  if prompt == nil then
    return language ~= "English" and ("%s\n\nWrite everything that is not code in %s."):format(DEFAULT_PROMPT, language)
      or vim.NIL
  end
  local name, model = choice.reference(options)
  local version = vim.version()
  prompt = evaluation:value("interactions.chat.opts.system_prompt", prompt, "string", vim.NIL, {
    default_system_prompt = DEFAULT_PROMPT,
    language = language,
    adapter = name,
    model = model,
    cwd = vim.fn.getcwd(),
    date = os.date("%Y-%m-%d"),
    nvim_version = ("%d.%d.%d"):format(version.major, version.minor, version.patch),
    os = vim.uv.os_uname().sysname,
  })
  evaluation:placeholders("interactions.chat.opts.system_prompt", prompt)
  return prompt
end

---@param options table
---@param given table
---@param evaluation CodeCompanion.Evaluation
---@return table
local function chat(options, given, evaluation)
  local opts = options.interactions.chat.opts
  local name, model = choice.reference(options)
  local policy, adapter_policies = require("codecompanion.config.policies").choice(opts.policy)
  local managed = static(vim.tbl_get(given, "interactions", "chat", "opts", "context_management") or {})
  local style = opts.response_style or (managed.sessions or {}).response_style
  if managed.sessions then
    managed.sessions.response_style = nil
    managed.sessions = next(managed.sessions) ~= nil and managed.sessions or nil
  end
  return {
    adapter = name,
    model = model,
    context_window = opts.context_window or 0,
    policy = policy,
    adapter_policies = object(adapter_policies),
    policies = object(vim.tbl_map(object, static(opts.policies))),
    strategies = object(opts.strategies),
    system_prompt = system_prompt(evaluation, options),
    max_provider_requests_per_turn = opts.max_provider_requests_per_turn,
    max_output_continuations = opts.max_output_continuations,
    budget = opts.budget,
    budget_warn = opts.budget_warn,
    total_budget = opts.total_budget,
    total_budget_warn = opts.total_budget_warn,
    on_compact = opts.on_compact,
    tell_open_file = opts.tell_open_file,
    tell_environment = opts.tell_environment,
    tokenizer = opts.tokenizer,
    compaction_timeout_s = opts.compaction_timeout / 1000,
    response_style = style or vim.NIL,
    live_attachments = opts.live_attachments,
    context_packet = { enabled_sections = opts.context_packet.enabled_sections },
    checkpoint_every_messages = opts.checkpoint_every_messages or 0,
    memory = { enabled = opts.memory.enabled, exclude = opts.memory.exclude, max_tokens = opts.memory.max_tokens },
    context_management = object(managed),
  }
end

---@param options table
---@param evaluation CodeCompanion.Evaluation
---@return table
local function tool_groups(options, evaluation)
  local told = {}
  for name, group in require("codecompanion.values.sorted")(options.interactions.chat.tools.groups) do
    if not group then
      told[name] = vim.NIL
    elseif not group.tools then
      local text = "interactions.chat.tools.groups.%s: `tools` is missing; expected a list of tool names"
      table.insert(evaluation.problems, text:format(name))
    elseif not name:find("^[%w_.:-]+$") then
      local text = "interactions.chat.tools.groups.%s: a name may contain only letters, digits, `_`, `-`, `.` and `:`"
      table.insert(evaluation.problems, text:format(name))
    else
      told[name] = {
        tools = group.tools,
        description = group.description,
        system_prompt = group.system_prompt or "",
        collapse = group.opts.collapse_tools,
      }
    end
  end
  return told
end

---@param options table
---@param evaluation CodeCompanion.Evaluation
---@return table
local function tools(options, evaluation)
  local entries, own, is_built_in = {}, {}, {}
  for _, option in ipairs(require("codecompanion.config.options.tools")) do
    is_built_in[option.name] = true
  end
  local function is_on(path, value)
    return evaluation:value(path, value, "boolean", false)
  end
  for name, tool in require("codecompanion.values.sorted")(options.interactions.chat.tools) do
    if not is_built_in[name] then
      local told, problem
      if tool then
        told, problem = require("codecompanion.config.own_tool_settings").told(name, tool, is_on)
      end
      own[name] = told
      table.insert(evaluation.problems, problem)
    elseif name ~= "opts" and name ~= "groups" then
      local opts = tool and tool.opts
      entries[name] = tool
          and {
            enabled = tool.enabled,
            require_approval_before = opts.require_approval_before,
            allowed_in_yolo_mode = opts.allowed_in_yolo_mode,
            timeout_s = opts.timeout / 1000,
            allowed_prefixes = opts.allowed_prefixes,
            keep_variables = opts.keep_variables,
            hide_variables = opts.hide_variables,
          }
        or { enabled = false }
    end
  end
  local opts = options.interactions.chat.tools.opts
  return {
    enabled = opts.enabled,
    yolo = opts.yolo,
    max_result_chars = opts.max_result_chars,
    guarded_files = opts.guarded_files,
    entries = entries,
    own = object(own),
    groups = object(tool_groups(options, evaluation)),
    default_tools = opts.default_tools or vim.NIL,
  }
end

---@param options table
---@param evaluation CodeCompanion.Evaluation
---@return table
local function rules(options, evaluation)
  local groups = {}
  for name, group in pairs(options.rules) do
    if name ~= "opts" and group then
      local enabled = evaluation:value(("rules.%s.enabled"):format(name), group.enabled, "boolean", false)
      if enabled then
        groups[name] = {
          description = group.description,
          files = vim.tbl_map(function(file)
            file = type(file) == "string" and { path = file } or file
            return { path = file.path, parser = file.parser or group.parser or "none" }
          end, group.files),
        }
      end
    end
  end
  local opts = options.rules.opts.chat
  local autoload = evaluation:value("rules.opts.chat.autoload", opts.autoload, { "string", "table" }, {})
  return {
    groups = object(groups),
    autoload = type(autoload) == "string" and { autoload } or autoload,
    enabled = evaluation:value("rules.opts.chat.enabled", opts.enabled, "boolean", false),
  }
end

---@param given table `completion` of the options; keys, delays and filetypes stay in the editor
---@return table
local function completion(given)
  return {
    enabled = given.enabled,
    endpoint = given.endpoint,
    url = given.url or "",
    adapter = given.adapter or "",
    api_key = given.api_key or "",
    model = given.model,
    family = given.family or "",
    tokens = object(given.tokens),
    max_tokens = given.max_tokens,
    temperature = given.temperature,
    multi_line = given.multi_line,
    project = given.project,
    timeout_s = given.timeout / 1000,
  }
end

---Return the adapters sent to the host, and the variables to look for in its environment.
---@param options table
---@return { entries: table<string, table>, proxy: string, keys: string[], sent: string[] } told
---@return string[] problems
function M.adapters(options)
  local http = options.adapters.http
  local told = { entries = {}, proxy = vim.tbl_get(http, "opts", "proxy") or "", keys = {}, sent = {} }
  local problems = {}
  table.insert(told.keys, options.completion.api_key)
  for _, name in ipairs(adapters.names(http)) do
    local resolved = adapters.resolve(name, http)
    vim.list_extend(problems, resolved.problems)
    if resolved.settings then
      table.insert(told.keys, resolved.settings.key)
    end
    local entry = resolved.told
    if entry then
      told.entries[name] = entry
      table.insert(told.sent, entry.url)
      vim.list_extend(told.sent, vim.tbl_values(entry.env))
      vim.list_extend(told.sent, vim.tbl_values(entry.headers))
    end
  end
  told.entries = object(told.entries)
  return told, problems
end

---@param options table
---@param evaluation CodeCompanion.Evaluation
---@return table
local function gathering(options, evaluation)
  local told = require("codecompanion.config.gathering_settings")(options.context, M.adapter_reference)
  if options.opts.send_code ~= true and options.context.embedding.url then
    local text = "context.embedding.url: an embedding endpoint receives the project's code, so it is not used"
      .. " unless `opts.send_code` is true; `context.embedding.onnx` runs locally"
    table.insert(evaluation.problems, text)
    told.embedding = vim.empty_dict()
  end
  return told
end

---@param given string|table The checked option; a string only if it is the default
---@return table
local function sandbox(given)
  local told = type(given) == "string" and { mode = given } or given
  local function paths(list)
    return vim.tbl_map(vim.fs.normalize, list or {})
  end
  return { mode = told.mode, write = paths(told.write), read = paths(told.read), network = told.network or false }
end

---@param options table
---@param given table
---@return table settings
---@return string[] problems
function M.settings(options, given)
  local evaluation = setmetatable({ problems = {} }, Evaluation)
  local root = evaluation:value("workspace.root", options.workspace.root, "string", "")
  local settings = {
    chat = chat(options, given, evaluation),
    models = object(vim.tbl_map(object, options.models)),
    tools = tools(options, evaluation),
    rules = rules(options, evaluation),
    context = gathering(options, evaluation),
    completion = completion(options.completion),
    mcp = require("codecompanion.config.mcp_settings")(options.mcp),
    workspace = { root = root and root ~= "" and vim.fs.normalize(root) or "" },
    trust = { enabled = options.trust.enabled, folders = options.trust.folders },
    sandbox = sandbox(options.sandbox),
    log_level = options.opts.log_level,
  }
  return settings, evaluation.problems
end

---Return the user's language for the model: the configured language, otherwise the locale (`de_DE`), or "" if unknown.
---@param given table
---@return string
function M.language(given)
  local configured = vim.tbl_get(given, "opts", "language")
  if configured then
    return configured
  end
  local locale = ""
  for _, name in ipairs({ "LC_ALL", "LC_MESSAGES", "LANG" }) do
    locale = locale == "" and vim.env[name] or locale
  end
  locale = locale:match("^[^.@]*")
  return (locale == "C" or locale == "POSIX") and "" or locale
end

---Evaluate the functions in `context_management` for one chat (R-502, R-503).
---@param given table
---@param ctx { adapter: CodeCompanion.AdapterInfo, model: string, window: integer }
---@return table overrides
---@return string[] problems
function M.overrides(given, ctx)
  local evaluation = setmetatable({ problems = {} }, Evaluation)
  local base = "interactions.chat.opts.context_management"
  local managed = vim.tbl_get(given, "interactions", "chat", "opts", "context_management") or {}
  local overrides = {}
  if type(managed.enabled) == "function" then
    overrides.enabled = evaluation:value(base .. ".enabled", managed.enabled, "boolean", nil, ctx.adapter)
  end
  local threshold = managed.compaction_threshold or (managed.sessions or {}).compaction_threshold
  if type((managed.compaction or {}).trigger) == "function" and threshold ~= nil then
    local text = "%s.compaction_threshold: `%s.compaction.trigger` is a function and takes precedence; set only one"
    table.insert(evaluation.problems, text:format(base, base))
  end
  for _, stage in ipairs({ "editing", "compaction" }) do
    local trigger = (managed[stage] or {}).trigger
    if type(trigger) == "function" then
      local path = ("%s.%s.trigger"):format(base, stage)
      local answer = evaluation:value(path, trigger, { "number", "string", "boolean" }, nil, ctx)
      overrides[stage] = answer ~= nil and { trigger = answer } or nil
    end
  end
  return object(overrides), evaluation.problems
end

return M
