---The configuration: what the user gave, checked and merged over the defaults of `codecompanion.config.schema`.
---
---The check runs when an option is first read, and at the latest right after start-up (`codecompanion.setup`), so that
---mistakes are seen without costing start-up time. A mistake never breaks anything: the default stays in force.

---@class CodeCompanion.Config
---@field options table Everything, merged (checked on first use)
local M = {}

---@type table What was given to setup(), untouched
M.user = (package.loaded["codecompanion"] or {}).given or {}

---@type CodeCompanion.Checked?
local checked
---@type string[] Key paths already warned about in this session
local warned = {}

---@param lines string[]
---@param level integer
---@param heading string
local function notify(lines, level, heading)
  local function show()
    vim.notify(heading .. "\n  " .. table.concat(lines, "\n  "), level, { title = "codecompanion" })
  end
  if vim.in_fast_event() then
    vim.schedule(show)
  else
    show()
  end
end

---@param problems string[]
---@param consequence string
local function report(problems, consequence)
  if #problems > 0 then
    local noun = #problems == 1 and "1 mistake" or ("%d mistakes"):format(#problems)
    notify(problems, vim.log.levels.ERROR, ("codecompanion: %s in the configuration (%s):"):format(noun, consequence))
  end
end

---@param warnings string[]
local function warn_once(warnings)
  local fresh = vim.tbl_filter(function(text)
    local new = not warned[text]
    warned[text] = true
    return new
  end, warnings)
  if #fresh > 0 then
    notify(fresh, vim.log.levels.WARN, "codecompanion: the configuration uses old names:")
  end
end

---Put the default in the place of an adapter name that does not exist, and say so (R-504).
---@param result CodeCompanion.Checked
local function check_adapters(result)
  local adapters = require("codecompanion.adapters")
  local resolve = require("codecompanion.adapters.resolve")
  local http = result.options.adapters.http
  local names = adapters.names(http)
  for _, name in ipairs(names) do
    -- Functions are asked when the host starts, not here: they may be slow.
    if type(http[name]) == "table" or type(http[name]) == "string" or (http.extend or {})[name] then
      if type(http[name]) ~= "function" then
        vim.list_extend(result.problems, adapters.resolve(name, http).problems)
      end
    end
  end
  local chat, given = result.options.interactions.chat, vim.tbl_get(result.given, "interactions", "chat") or {}
  local reference = require("codecompanion.config.host").adapter_reference
  local function exists(path, value)
    local name = value ~= nil and reference(value) or nil
    if name and not vim.list_contains(names, name) then
      table.insert(result.problems, ("%s: %s"):format(path, resolve.no_such_adapter(name, names)))
      return false
    end
    return true
  end
  if not exists("interactions.chat.adapter", chat.adapter) then
    chat.adapter, given.adapter = "offline", nil
  end
  local path = "interactions.chat.opts.context_management.compaction.adapter"
  if not exists(path, chat.opts.context_management.compaction.adapter) then
    chat.opts.context_management.compaction.adapter = nil
    local managed = given.opts.context_management
    managed.compaction.adapter = nil
    managed.compaction = next(managed.compaction) ~= nil and managed.compaction or nil
  end
  for name in require("codecompanion.config.sorted")(http.extend or {}) do
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
    report(checked.problems, "for these the defaults stay in force")
    warn_once(checked.warnings)
  end
  return checked
end

---Replace what was given before; it is checked when an option is next read.
---@param opts? table
function M.setup(opts)
  M.user, checked = opts or {}, nil
end

---Mistakes in the configuration, one line each; for `:checkhealth`.
---@return string[]
function M.problems()
  return vim.list_extend(vim.list_extend({}, result().problems), result().warnings)
end

---What the request `hello` tells the host (`python/codecompanion/settings.py`).
---@return table
function M.for_host()
  local now = result()
  local settings, problems = require("codecompanion.config.host").settings(now.options, now.given)
  local fresh = vim.tbl_filter(function(text)
    return not vim.list_contains(now.problems, text)
  end, problems)
  report(fresh, "these are left out")
  return settings
end

---The functions in `context_management` evaluated for a chat: the payload of the request `set_overrides`.
---@param ctx { adapter: string, model: string, window: integer }
---@return table overrides Empty when the configuration holds no such function
function M.evaluate_overrides(ctx)
  local adapters = require("codecompanion.adapters")
  local settings = adapters.resolve(ctx.adapter).settings
  local info = settings and adapters.info(settings, ctx.model) or { name = ctx.adapter, model = ctx.model }
  local asked = { adapter = info, model = ctx.model, window = ctx.window }
  local overrides, problems = require("codecompanion.config.host").overrides(result().given, asked)
  report(problems, "the policy's own values stay in force")
  return overrides
end

---Keys that the configuration gives as functions: of this adapter and of the one that writes summaries.
---@param adapter_name? string The chat's adapter when nil
---@return table<string, string> keys By adapter name; empty when there is no such function
---@return string? error One sentence, when a function failed
function M.secrets(adapter_name)
  local reference = require("codecompanion.config.host").adapter_reference
  local chat = M.options.interactions.chat
  local wanted = { adapter_name or (reference(chat.adapter)) }
  local summariser = chat.opts.context_management.compaction.adapter
  if summariser then
    table.insert(wanted, (reference(summariser)))
  end
  local keys, failure = {}, nil
  for _, name in ipairs(wanted) do
    local resolved = require("codecompanion.adapters").resolve(name)
    if resolved.key_function and not keys[name] then
      local ok, key = pcall(resolved.key_function, resolved.entry)
      if ok and type(key) == "string" and key ~= "" then
        keys[name] = vim.trim(key)
      else
        local what = ok and "returned no key" or ("failed: %s"):format(key)
        failure = ("adapters.http.%s.env.api_key: the function %s"):format(name, what)
        report({ failure }, "there is no key for this adapter")
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
