---Checks an entry's `opts` against `opts.lua` and puts them where they belong.

local nearest = require("codecompanion.config.nearest")
local sorted = require("codecompanion.config.sorted")
local tokens = require("codecompanion.config.tokens")

---@type table<string, CodeCompanion.AdapterOpt>
local OPTS = require("codecompanion.adapters.opts")

local M = {}

local NETWORK = { "openai", "openai_compatible", "openai_responses", "anthropic" }

---@param opt CodeCompanion.AdapterOpt
---@param kind string
---@return boolean
local function takes(opt, kind)
  return vim.list_contains(opt.kinds or NETWORK, kind)
end

---@param opt CodeCompanion.AdapterOpt
---@param value any
---@param wanted string
---@return boolean
local function is_of(opt, value, wanted)
  if wanted == "integer" then
    return type(value) == "number" and value % 1 == 0 and value >= (opt.min or 0)
  elseif wanted == "tokens" then
    return tokens.parse(value) ~= nil
  elseif wanted == "strings" then
    return vim.islist(value or 0) and vim.iter(value):all(function(item)
      return type(item) == "string"
    end)
  elseif type(value) ~= wanted then
    return false
  end
  return wanted ~= "string" or not opt.enum or vim.list_contains(opt.enum, value)
end

local WORDS = { strings = "a list of strings", tokens = tokens.FORMS }

---@param opt CodeCompanion.AdapterOpt
---@param types string[]
---@return string
local function expectation(opt, types)
  local words = {}
  for _, wanted in ipairs(types) do
    if wanted == "string" and opt.enum then
      vim.list_extend(words, vim.tbl_map(vim.inspect, opt.enum))
    else
      words[#words + 1] = wanted == "integer" and ("integer from %d on"):format(opt.min or 0) or WORDS[wanted] or wanted
    end
  end
  return table.concat(words, " or ")
end

---@param self CodeCompanion.Resolving
---@param at string Key path below the entry
---@param opt CodeCompanion.AdapterOpt
---@param value any
---@return boolean fits A problem has been noted when not
local function check(self, at, opt, value)
  local types = type(opt.type) == "table" and opt.type or { opt.type }
  local fits = vim.iter(types):any(function(wanted)
    return is_of(opt, value, wanted)
  end)
  if not fits then
    self:problem(at, ("got %s; expected %s"):format(vim.inspect(value), expectation(opt, types)))
  elseif opt.fields and type(value) == "table" then
    for key, inner in sorted(value) do
      local field = opt.fields[key]
      if not field then
        local known = vim.tbl_keys(opt.fields)
        table.sort(known)
        local text = ("unknown key; expected one of %s"):format(table.concat(known, ", "))
        self:problem(("%s.%s"):format(at, key), text)
        fits = false
      else
        fits = check(self, ("%s.%s"):format(at, key), field, inner) and fits
      end
    end
  end
  return fits
end

---@param self CodeCompanion.Resolving
---@param name string
---@param opt CodeCompanion.AdapterOpt
---@param value any
local function set_opt(self, name, opt, value)
  local settings = self.settings
  if not takes(opt, settings.kind) then
    self:problem("opts." .. name, ("means nothing to an adapter of kind %s"):format(settings.kind))
  elseif check(self, "opts." .. name, opt, value) then
    local place = opt.option and settings.options or settings
    if opt.fields and type(value) == "boolean" then
      -- true = with the defaults, false = not at all.
      place[opt.field] = value and vim.empty_dict() or nil
    else
      place[opt.field] = opt.milliseconds and value / 1000 or opt.type == "tokens" and tokens.parse(value) or value
    end
  end
end

---@param self CodeCompanion.Resolving
function M.set(self)
  local names = vim.tbl_filter(function(name)
    return takes(OPTS[name], self.settings.kind)
  end, vim.tbl_keys(OPTS))
  table.sort(names)
  for name, value in sorted(self.entry.opts or {}) do
    local near = nearest.word(tostring(name), names)
    if OPTS[name] then
      set_opt(self, name, OPTS[name], value)
    elseif name == "stream" or name == "tools" then
      if value ~= true then
        self:problem("opts." .. name, "cannot be switched off here")
      end
    elseif near then
      self:problem("opts." .. tostring(name), ("unknown key; did you mean `%s`?"):format(near))
    else
      self:problem("opts." .. tostring(name), ("unknown key; expected one of %s"):format(table.concat(names, ", ")))
    end
  end
end

return M
