---Provides the configuration: the user's options, checked and merged over the defaults of
---`codecompanion.config.schema`.
---
---The check runs when an option is first read, and at the latest right after startup (`codecompanion.setup`), so it
---reports mistakes without slowing down startup. A mistake never breaks anything: the default applies.

---@class CodeCompanion.Config
---@field options table All options, merged; checked on first use
local M = {}

---@type table Argument of setup(), unmodified; setup() stores it under this name, which no file has
M.user = (package.loaded["codecompanion_given"] or { opts = {} }).opts

---@type CodeCompanion.Checked?
local checked
---@type table<string, boolean> Messages already shown in this session; for mistakes, since the last setup()
local said, said_mistakes = {}, {}
---@type string[] Options that the host rejected
local of_host = {}
---@type string[] Failures of user-defined code, in the host and in the editor
local failed_there, failed_here = {}, {}
local MAX_FAILURES = 50
---Options of `interactions.chat.opts` that policies read.
local OF_POLICIES = { "context_management.", "response_style:", "context_packet." }

---Show new findings in one line, which also names the command for the full list.
---@param found CodeCompanion.Findings
local function tell(found)
  local function fresh(texts, known)
    return vim.tbl_filter(function(text)
      local new = not known[text]
      known[text] = true
      return new
    end, texts)
  end
  local news = {
    problems = fresh(found.problems, said_mistakes),
    old_names = fresh(found.old_names, said),
    foreign = fresh(found.foreign, said),
  }
  local sentences = require("codecompanion.config.findings").sentences(news)
  if #sentences > 0 then
    local severity = require("codecompanion.severity")
    local level = #news.problems > 0 and severity.ERROR or #news.old_names > 0 and severity.WARN or severity.INFO
    require("codecompanion.say").line(sentences, level)
  end
end

---Record and report mistakes found after the initial check, for example in values returned by functions.
---@param now CodeCompanion.Checked
---@param problems string[]
local function report(now, problems)
  local found = vim.tbl_filter(function(text)
    return not vim.list_contains(now.problems, text)
  end, problems)
  vim.list_extend(now.problems, found)
  tell({ problems = found, old_names = {}, foreign = {}, moves = {} })
end

---Replace an unknown adapter name with the default, and report it (R-504).
---@param result CodeCompanion.Checked
local function check_adapters(result)
  local adapters = require("codecompanion.adapters")
  local resolve = require("codecompanion.adapters.adapter_entry")
  local http = result.options.adapters.http
  local names = adapters.names(http)
  for _, name in ipairs(names) do
    -- Functions may be slow, so they are called when the host starts, not here.
    if type(http[name]) == "table" or type(http[name]) == "string" or (http.extend or {})[name] then
      if type(http[name]) ~= "function" then
        local resolved = adapters.resolve(name, http)
        vim.list_extend(result.problems, resolved.problems)
        vim.list_extend(result.foreign, resolved.foreign)
      end
    end
  end
  local chat, given = result.options.interactions.chat, vim.tbl_get(result.given, "interactions", "chat") or {}
  local reference = require("codecompanion.config.settings_for_host").adapter_reference
  local function exists(path, value)
    local name = value ~= nil and reference(value) or nil
    if name and not vim.list_contains(names, name) then
      table.insert(result.problems, ("%s: %s"):format(path, resolve.no_such_adapter(name, names)))
      return false
    end
    return true
  end
  if not exists("interactions.chat.adapter", chat.adapter) then
    local problem = result.problems[#result.problems]
    result.for_chats = { problem .. (problem:find("%p$") and "" or ".") .. " New chats use offline, without a model." }
    result.used[problem] = "offline, without a model"
    chat.adapter, given.adapter = "offline", nil
  end
  local path = "interactions.chat.opts.context_management.compaction.adapter"
  if not exists(path, chat.opts.context_management.compaction.adapter) then
    chat.opts.context_management.compaction.adapter = nil
    local managed = given.opts.context_management
    managed.compaction.adapter = nil
    managed.compaction = next(managed.compaction) ~= nil and managed.compaction or nil
  end
  if not exists("completion.adapter", result.options.completion.adapter) then
    result.options.completion.adapter, result.given.completion.adapter = nil, nil
  end
  http.opts.order = vim.tbl_filter(function(name)
    return exists("adapters.http.opts.order", name)
  end, http.opts.order)
  for name in require("codecompanion.values.sorted")(http.extend or {}) do
    name = tostring(name)
    if not vim.list_contains(names, name) then
      table.insert(result.problems, ("adapters.http.extend.%s: %s"):format(name, resolve.no_such_adapter(name, names)))
    end
  end
end

---@return CodeCompanion.Checked
local function result()
  if not checked then
    checked = require("codecompanion.config.check").merge(require("codecompanion.config.schema"), M.user)
    check_adapters(checked)
    tell(M.findings())
  end
  return checked
end

---Replace the options; they are checked the next time any of them is read.
---@param opts? table
function M.setup(opts)
  M.user, checked, of_host, said_mistakes = opts == nil and {} or opts, nil, {}, {}
  failed_there, failed_here = {}, {}
end

---Check the configuration now, and report problems.
function M.check()
  result()
end

---Add and report mistakes that only modules above the configuration can detect.
---@param problems string[]
function M.add_mistakes(problems)
  report(result(), problems)
end

---Return all findings about the configuration, including those of the host.
---@return CodeCompanion.Findings
function M.findings()
  local now = result()
  local problems = vim.tbl_filter(function(text)
    return not vim.iter(of_host):any(function(longer)
      return vim.startswith(longer, text) -- the host's text adds the consequence
    end)
  end, now.problems)
  vim.list_extend(problems, of_host)
  local failures = vim.list_extend(vim.list_extend({}, failed_here), failed_there)
  return {
    problems = problems,
    used = now.used,
    old_names = now.warnings,
    foreign = now.foreign,
    moves = now.moves,
    failures = failures,
  }
end

---Store the options that the host rejected; each chat reports them, so they are not reported here.
---@param mistakes string[]
---@param failures? string[] Failures of user-defined code
function M.take_from_host(mistakes, failures)
  of_host = vim.tbl_filter(function(text)
    return not vim.list_contains(result().for_chats or {}, text) -- it was reported here first
  end, mistakes)
  failed_there = failures or {}
end

---Return the mistakes that each chat also reports before it is used.
---@return string[]? sentences nil if there are none
function M.for_chats()
  return result().for_chats
end

---Return mistakes in options that policies read: the host stops the policies that use them (R-347, R-350).
---@return string[]? sentences nil if there are none
function M.wrong_options()
  local found = vim.tbl_filter(function(problem)
    return vim.iter(OF_POLICIES):any(function(name)
      return vim.startswith(problem, "interactions.chat.opts." .. name)
    end)
  end, result().problems)
  return #found > 0 and found or nil
end

---Record a failure of user-defined code in the editor; the caller has already reported it.
---@param sentence string Starts with the key path
function M.failed(sentence)
  if not vim.list_contains(failed_here, sentence) then
    failed_here[#failed_here + 1] = sentence
    if #failed_here > MAX_FAILURES then
      table.remove(failed_here, 1)
    end
  end
end

---Return the settings sent with the request `hello` (`python/codecompanion/settings.py`).
---@return table
function M.for_host()
  local now = result()
  local settings, problems = require("codecompanion.config.settings_for_host").settings(now.options, now.given)
  report(now, problems)
  return settings
end

---@return string language The user's language, or "" if unknown
function M.language()
  return require("codecompanion.config.settings_for_host").language(result().given)
end

---Return the adapters sent with `hello`, and the variables to remove from the host's environment.
---@return { entries: table<string, table>, proxy: string, keys: string[], sent: string[] }
function M.adapters()
  local now = result()
  local told, problems = require("codecompanion.config.settings_for_host").adapters(now.options)
  report(now, problems)
  return told
end

---@type table<string, string[]> Problems in the last results of the `context_management` functions, by chat
local wrong_in = {}

---Record the problems of a chat, and drop its earlier problems unless another chat also has them.
---@param now CodeCompanion.Checked
---@param chat string Chat id
---@param problems string[]
local function report_of_chat(now, chat, problems)
  local before = wrong_in[chat] or {}
  wrong_in[chat] = #problems > 0 and problems or nil
  local wrong = vim.iter(vim.tbl_values(wrong_in)):flatten():totable()
  now.problems = vim.tbl_filter(function(text)
    return not vim.list_contains(before, text) or vim.list_contains(wrong, text)
  end, now.problems)
  report(now, problems)
end

---Evaluate the functions in `context_management` for a chat, and return the payload of the request `set_overrides`.
---@param ctx { adapter: string, model: string, window: integer, chat?: string }
---@return table overrides Empty if the configuration contains no such function
---@return string[] wrong A sentence for each function without a usable result
function M.evaluate_overrides(ctx)
  local adapters = require("codecompanion.adapters")
  local settings = adapters.resolve(ctx.adapter, result().options.adapters.http).settings
  local info = settings and adapters.info(settings, ctx.model) or { name = ctx.adapter, model = ctx.model }
  local asked = { adapter = info, model = ctx.model, window = ctx.window }
  local overrides, problems = require("codecompanion.config.settings_for_host").overrides(result().given, asked)
  report_of_chat(result(), ctx.chat or "", problems)
  return overrides, problems
end

---Return the keys that are configured as functions, for this adapter and for the adapter that writes summaries.
---@param adapter_name? string Defaults to the chat's adapter
---@return table<string, string> keys By adapter name; empty if there is no such function
---@return string? error One sentence, if a function failed
function M.secrets(adapter_name)
  local options = M.options
  local wanted = { adapter_name or (require("codecompanion.adapters.default_adapter").reference(options)) }
  local summariser = options.interactions.chat.opts.context_management.compaction.adapter
  if summariser then
    table.insert(wanted, (require("codecompanion.config.settings_for_host").adapter_reference(summariser)))
  end
  local keys, failure = {}, nil
  for _, name in ipairs(wanted) do
    local resolved = require("codecompanion.adapters").resolve(name, M.options.adapters.http)
    if resolved.key_function and not keys[name] then
      local ok, key = pcall(resolved.key_function, resolved.entry)
      if ok and type(key) == "string" and key ~= "" then
        keys[name] = vim.trim(key)
      else
        local what = ok and "returned no key" or ("failed: %s"):format(key)
        failure = ("adapters.http.%s.env.api_key: the function %s"):format(name, what)
        report(result(), { failure })
      end
    end
  end
  return next(keys) == nil and vim.empty_dict() or keys, failure
end

return setmetatable(M, {
  __index = function(_, key)
    if key == "options" then
      return result().options
    end
  end,
})
