---Finds variables of Neovim's environment that look like secrets; the host's process is started without them.
---
---Any program run by the user can read the environment of a process (`/proc/<pid>/environ`). Hidden variables are sent
---to the host in the message `hello`, and in `give_environment` after a change. Variables that are not secret may also
---be hidden: among all variables, hidden or not, the host decides which ones the model's programs get
---(`tools/commands/command_environment.py`).

local M = {}

local MIN_VALUE_LENGTH = 8 -- a shorter header value may be any word
local MIN_KEY_LENGTH = 16 -- letters after a prefix such as `sk-`

---@class CodeCompanion.SecretRules
---@field names table<string, true> Variables named by adapters
---@field patterns string[] Lua patterns of names, in upper case
---@field plain string[]
---@field beginnings string[]
---@field sent string[] Headers and URLs

---@type CodeCompanion.SecretRules?
local rules
---Variables last sent to the host, and the whole environment at that time.
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

---@param settings table Settings sent with `hello`
---@param adapters { keys: string[], sent: string[] } Sources of their keys; data sent to their endpoints
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

---Split the current environment; `changes` reports later changes.
---@param settings table Settings sent with `hello`
---@param adapters { keys: string[], sent: string[] }
---@return table<string, string> open Variables of the host's process
---@return table<string, string> hidden Variables to send with `hello`
function M.divide(settings, adapters)
  rules = make_rules(settings, adapters)
  seen = vim.uv.os_environ()
  local open = {}
  told = vim.empty_dict() -- encoded as an object in JSON
  for name, value in pairs(seen) do
    local side = is_secret(name, value) and told or open
    side[name] = value
  end
  return open, vim.tbl_extend("force", vim.empty_dict(), told)
end

---Return the changes since the last call, or nil if there are none.
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
