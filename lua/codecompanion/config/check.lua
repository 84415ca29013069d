---Checks the user's options against the schema and merges them over the defaults in one walk.
---
---An invalid value never stops the walk: it is reported with its full key path, and the default applies.
---
---The check is in Lua because mistakes are reported right after startup (4 ms, once, when idle), while starting a host
---for it would take 150 ms or more, and because keymaps, windows and roles need their defaults before a host exists.
---The host checks the meaning of values (triggers, policies, adapters).

local foreign = require("codecompanion.config.unsupported_options")
local moved = require("codecompanion.config.renamed_options")
local nearest = require("codecompanion.values.nearest")
local plain = require("codecompanion.values.plain")
local sorted = require("codecompanion.values.sorted")
local values = require("codecompanion.config.check_value")

---@class CodeCompanion.Checked
---@field options table Defaults, with the user's valid options merged over them
---@field given table Only the user's valid options, normalised
---@field problems string[] One line each, starting with the key path
---@field used table<string, string> Value used instead, by problem, if there is a single one
---@field warnings string[] Deprecated names
---@field for_chats? string[] Problems that each chat reports
---@field foreign string[] Keys of codecompanion.nvim that have no effect here
---@field moves CodeCompanion.Move[] Keys of codecompanion.nvim that were renamed

---@class CodeCompanion.Walk
---@field schema CodeCompanion.Option
---@field problems string[]
---@field used table<string, string>
---@field warnings string[]
---@field foreign string[]
local Walk = {}
Walk.__index = Walk

---@param path string[]
---@param text string
function Walk:problem(path, text)
  table.insert(self.problems, (#path > 0 and table.concat(path, ".") or "setup()") .. ": " .. text)
end

---@param path string[]
---@param part string|integer
---@return string[]
local function at(path, part)
  local longer = vim.list_extend({}, path)
  longer[#longer + 1] = tostring(part)
  return longer
end

---@param node CodeCompanion.Option
---@param value any
---@param path string[]
---@return boolean ok
---@return any normalised
function Walk:leaf(node, value, path)
  local unfit = values.unfit(node, value)
  if unfit then
    self:problem(path, unfit)
    return false
  end
  if node.items and type(value) == "table" then
    -- Check the elements first, so that a check of the whole list sees only elements of the right type.
    value = vim.islist(value) and self:list(node, value, path) or self:map(node, value, path)
  end
  local wrong, normalised = values.further(node, value)
  if not wrong and type(normalised) == "number" and (normalised ~= normalised or math.abs(normalised) == math.huge) then
    wrong = ("got %s; expected a number"):format(normalised)
  end
  if wrong then
    self:problem(path, wrong)
    return false
  end
  return true, normalised
end

---@param node CodeCompanion.Option
---@param value table
---@param path string[]
---@return table normalised Without invalid entries
function Walk:map(node, value, path)
  local good = {}
  for key, element in sorted(value) do
    local ok, normalised = self:leaf(node.items, element, at(path, key))
    good[key] = ok and normalised or nil
  end
  return good
end

---@param node CodeCompanion.Option
---@param value any[]
---@param path string[]
---@return any[] normalised Without invalid elements
function Walk:list(node, value, path)
  local good = {}
  for index, element in ipairs(value) do
    local ok, normalised = self:leaf(node.items, element, at(path, index))
    if ok then
      good[#good + 1] = normalised
    end
  end
  return good
end

---@param node CodeCompanion.Option
---@param value table
---@param path string[]
---@return table
function Walk:without_legacy(node, value, path)
  for old, new in pairs(node.legacy or {}) do
    if value[old] ~= nil then
      value = vim.tbl_extend("force", {}, value)
      local former, parts = value[old], vim.split(new, ".", { plain = true })
      value[old] = nil
      local text = ("%s is the old name of %s; please rename it"):format(
        table.concat(at(path, old), "."),
        table.concat(vim.list_extend(vim.list_extend({}, path), parts), ".")
      )
      local parent = value
      for index = 1, #parts - 1 do
        local inner = parent[parts[index]]
        if inner == nil or type(inner) == "table" then
          inner = vim.tbl_extend("force", {}, inner or {})
          parent[parts[index]] = inner
        end
        parent = inner
      end
      if type(parent) == "table" and parent[parts[#parts]] == nil then
        parent[parts[#parts]] = former
      else
        text = text .. "; both are set, and the new one is used"
      end
      table.insert(self.warnings, text)
    end
  end
  return value
end

---@param node CodeCompanion.Option
---@param value table
---@param path string[]
---@return table
function Walk:without_aliases(node, value, path)
  for theirs, ours in pairs(node.alias or {}) do
    if value[theirs] ~= nil then
      local renamed = vim.tbl_extend("force", {}, value)
      renamed[theirs] = nil
      if value[ours] == nil then
        renamed[ours] = value[theirs]
      else
        self:problem(at(path, theirs), ("is another name for `%s`, which is also set and takes priority"):format(ours))
      end
      value = renamed
    end
  end
  return value
end

---@param node CodeCompanion.Option
---@return string[]
local function names_of(node)
  return vim.tbl_map(function(field)
    return field.name
  end, node.fields or {})
end

---@param node CodeCompanion.Option
---@param path string[]
---@param key any
function Walk:unknown(node, path, key)
  local name, siblings = tostring(key), names_of(node)
  local near = type(key) == "string" and nearest.word(name, siblings) or nil
  if near then
    return self:problem(at(path, name), ("unknown key; did you mean `%s`?"):format(near))
  end
  local others = type(key) == "string" and nearest.elsewhere(self.schema, name) or {}
  if #others > 0 then
    local named = "`" .. table.concat(others, "` or `") .. "`"
    return self:problem(at(path, name), ("unknown key here; did you mean %s?"):format(named))
  end
  self:problem(at(path, name), ("unknown key; the keys here are %s"):format(table.concat(siblings, ", ")))
end

---@param node CodeCompanion.Option
---@param value any Not nil
---@param path string[]
---@return any merged
---@return any given nil if the user set no valid option
function Walk:section(node, value, path)
  if value == false and node.disable then
    return false, false
  end
  if type(value) ~= "table" then
    self:problem(path, ("got %s; expected a table%s"):format(values.kind_of(value), node.disable and " or false" or ""))
    return values.default_of(node), nil
  end
  local source = self:without_aliases(node, self:without_legacy(node, value, path), path)
  local merged, given, known = {}, {}, {}
  for _, field in ipairs(node.fields) do
    local name = field.name --[[@as string]]
    known[name] = true
    if source[name] ~= nil then
      merged[name], given[name] = self:option(field, source[name], at(path, name))
    elseif not node.replace then
      merged[name] = values.default_of(field)
    end
  end
  self:free_keys(node, source, known, path, merged, given)
  if node.require and given[node.require] == nil then
    self:problem(path, ("`%s` is missing; there is no built-in with this name"):format(node.require))
    return nil, nil
  end
  return merged, next(given) ~= nil and given or nil
end

---Return whether an entry has none of the fields required of a user-defined entry; usually its name is a misspelled
---built-in name.
---@param node? CodeCompanion.Option
---@param value any
---@return boolean
local function lacks_all(node, value)
  if not node or not node.one_of or (value ~= false and type(value) ~= "table") then
    return false
  end
  return not value or not vim.iter(node.one_of):any(function(name)
    return value[name] ~= nil
  end)
end

---Return whether the name of an incomplete user-defined entry is a misspelled built-in name.
---@param node CodeCompanion.Option
---@param key string
---@param value any
---@return boolean
local function is_misspelled(node, key, value)
  local required = node.values and node.values.require
  local lacks = required and type(value) == "table" and value[required] == nil
  return lacks and nearest.word(key, names_of(node)) ~= nil
end

---@param node CodeCompanion.Option
---@param path string[]
---@param key string
function Walk:nameless(node, path, key)
  if nearest.word(key, names_of(node)) then
    return self:unknown(node, path, key)
  end
  local wanted = "`" .. table.concat(node.values.one_of, "` or `") .. "`"
  self:problem(at(path, key), ("%s is missing; there is no built-in with this name"):format(wanted))
end

---Handle the keys of a section that are not in its schema: free, foreign and mistyped ones.
---@param node CodeCompanion.Option
---@param source table
---@param known table<string, boolean>
---@param path string[]
---@param merged table Modified in place
---@param given table Modified in place
function Walk:free_keys(node, source, known, path, merged, given)
  for key, value in sorted(source) do
    local hint = not known[key] and type(key) == "string" and foreign.hint(at(path, key))
    local refusal = hint and foreign.refusal(at(path, key), value)
    if refusal then
      self:problem(at(path, key), refusal)
    elseif hint then
      table.insert(self.foreign, table.concat(at(path, key), ".") .. (hint ~= true and ": " .. hint or ""))
    elseif type(key) == "string" and not plain.is_utf8(key) then
      self:problem(path, ("the name %s is not UTF-8 text"):format(vim.inspect(key)))
    elseif not known[key] and type(key) == "string" and lacks_all(node.values, value) then
      self:nameless(node, path, key)
    elseif not known[key] and type(key) == "string" and is_misspelled(node, key, value) then
      self:unknown(node, path, key)
    elseif not known[key] and node.values and type(key) == "string" then
      merged[key], given[key] = self:option(node.values, value, at(path, key))
    elseif not known[key] then
      self:unknown(node, path, key)
    end
  end
end

---@param node CodeCompanion.Option
---@param value any Not nil
---@param path string[]
---@return any merged
---@return any given
function Walk:option(node, value, path)
  if node.fields then
    return self:section(node, value, path)
  end
  local ok, normalised = self:leaf(node, value, path)
  if not ok then
    local default = values.default_of(node)
    if default ~= nil and type(default) ~= "table" then
      self.used[self.problems[#self.problems]] = vim.inspect(default)
    end
    return default, nil
  elseif node.type == "table" and type(node.default) == "table" then
    return vim.tbl_deep_extend("force", node.default, normalised), normalised
  end
  return normalised, normalised
end

local M = {}

---@param schema CodeCompanion.Option
---@param user any Argument of setup()
---@return CodeCompanion.Checked
function M.merge(schema, user)
  local walk = setmetatable({ schema = schema, problems = {}, used = {}, warnings = {}, foreign = {} }, Walk)
  local ours, moves = moved.apply(user)
  local options, given = walk:section(schema, ours, {})
  return {
    options = options,
    given = given or {},
    problems = walk.problems,
    used = walk.used,
    warnings = walk.warnings,
    foreign = walk.foreign,
    moves = moves,
  }
end

return M
