---Which variables of Neovim's environment the host's process is started without, because they look like a secret.
---
---Every program of the user can read the environment of a process (`/proc/<pid>/environ`). What is left out here goes
---to the host in the message `hello`, and in `give_environment` when it changes. More may be left out than is secret:
---what the programs of a model get is decided by the host, out of both (`tools/commands/command_environment.py`).

local M = {}

local MIN_VALUE_LENGTH = 8 -- a shorter value of a header may be any word
local MIN_KEY_LENGTH = 16 -- letters after `sk-` and the like

---@class CodeCompanion.SecretRules
---@field names table<string, true> Variables that adapters name
---@field patterns string[] Lua patterns of names, in upper case
---@field plain string[]
---@field beginnings string[]
---@field sent string[] Headers and addresses

---@type CodeCompanion.SecretRules?
local rules
---What was told the host last, and everything as it was looked at then.
---@type table<string, string>, table<string, string>
local told, seen = {}, {}

---@param names string[]
---@return string[] patterns
local function patterns(names)
  return vim.tbl_map(function(name)
    return "^" .. vim.pesc(name:upper()):gsub("%%%*", ".*"):gsub("%%%?", ".") .. "$"
  end, names)
end

---@param text string
---@param list string[]
---@return boolean
local function matches(text, list)
  for _, pattern in ipairs(list) do
    if text:match(pattern) then
      return true
    end
  end
  return false
end

---@param settings table What `hello` sends
---@param adapters { keys: string[], sent: string[] } Where they have their keys; what goes to their endpoints
---@return CodeCompanion.SecretRules
local function make_rules(settings, adapters)
  local environment = require("codecompanion.system.python_environment")
  local path = environment.root() .. "/python/codecompanion/tools/commands/secret_variables.json"
  local listed = vim.json.decode(environment.read(path) or "{}")
  local names = {}
  for _, key in ipairs(adapters.keys) do
    names[key] = not key:find(":", 1, true) or nil
  end
  local hidden = {}
  for _, tool in pairs(vim.tbl_get(settings, "tools", "entries") or {}) do
    vim.list_extend(hidden, tool.hide_variables or {})
  end
  return {
    names = names,
    patterns = patterns(vim.list_extend(hidden, listed.names or {})),
    plain = patterns(listed.plain_names or {}),
    beginnings = listed.key_beginnings or {},
    sent = vim.tbl_filter(function(text)
      return type(text) == "string"
    end, adapters.sent),
  }
end

---@param value string
---@return boolean
local function looks_like_a_key(value)
  if value:find("%a[%w+.-]*://[^%s/@:]*:[^%s/@]+@") or value:find("PRIVATE KEY", 1, true) then
    return true
  end
  for _, beginning in ipairs(rules.beginnings) do
    for rest in value:gmatch("%f[%w_]" .. vim.pesc(beginning) .. "[-_]([%w_-]+)") do
      if #rest >= MIN_KEY_LENGTH then
        return true
      end
    end
  end
  return value:find("%f[%w]AIza[%w_-]+") ~= nil
    or value:find("%f[%w]AKIA[%u%d]+") ~= nil
    or value:find("eyJ[%w_-]+%.") ~= nil
end

---@param name string
---@param value string
---@return boolean
local function is_secret(name, value)
  local upper = name:upper()
  if rules.names[name] then
    return true
  elseif matches(upper, rules.plain) then
    return false
  elseif matches(upper, rules.patterns) or looks_like_a_key(value) then
    return true
  end
  for _, text in ipairs(#value >= MIN_VALUE_LENGTH and rules.sent or {}) do
    if text:find(value, 1, true) then
      return true
    end
  end
  return false
end

---Divide the environment as it is now; what follows is told by `changes`.
---@param settings table What `hello` sends
---@param adapters { keys: string[], sent: string[] }
---@return table<string, string> open For the host's process
---@return table<string, string> hidden To be told in `hello`
function M.divide(settings, adapters)
  rules = make_rules(settings, adapters)
  seen = vim.uv.os_environ()
  local open = {}
  told = vim.empty_dict() -- so that it is an object as JSON
  for name, value in pairs(seen) do
    local side = is_secret(name, value) and told or open
    side[name] = value
  end
  return open, vim.tbl_extend("force", vim.empty_dict(), told)
end

---What has to be told since the last time, nil when nothing changed.
---@return { changed: table<string, string>, gone: string[] }? payload
function M.changes()
  if not rules then
    return nil
  end
  local now = vim.uv.os_environ()
  local changed, gone = vim.empty_dict(), {}
  for name, value in pairs(now) do
    if seen[name] ~= value and (told[name] or is_secret(name, value)) then
      changed[name], told[name] = value, value
    end
  end
  for name in pairs(told) do
    if now[name] == nil then
      table.insert(gone, name)
      told[name] = nil
    end
  end
  seen = now
  if next(changed) == nil and #gone == 0 then
    return nil
  end
  return { changed = changed, gone = gone }
end

return M
