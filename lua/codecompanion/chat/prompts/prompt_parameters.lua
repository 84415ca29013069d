---Parses the parameters of a prompt from the text after its name, or asks for them one after another.

local choose = require("codecompanion.screen.choose")

local M = {}

---@class CodeCompanion.PromptParameter
---@field name string
---@field description? string
---@field default? string
---@field choices? string[]
---@field optional? boolean The user is not asked for it

---@param parameter CodeCompanion.PromptParameter
---@param value string
---@return string? problem
local function unfit(parameter, value)
  local choices = parameter.choices or {}
  if #choices > 0 and not vim.list_contains(choices, value) then
    local text = "%s: got %s; expected one of %s"
    return text:format(parameter.name, vim.inspect(value), table.concat(choices, ", "))
  end
end

---Parse leading `name=value` words; the rest is the value of the first parameter that has no value yet.
---@param prompt CodeCompanion.Prompt
---@param argument string
---@return table<string, string> values
---@return string? problem
function M.read(prompt, argument)
  local values, by_name = {}, {}
  for _, parameter in ipairs(prompt.parameters) do
    by_name[parameter.name] = parameter
  end
  local rest = vim.trim(argument)
  while true do
    local name, value, after = rest:match("^([%w_]+)=(%S*)%s*(.*)$")
    if not name or not by_name[name] then
      break
    end
    values[name], rest = value, after
  end
  for _, parameter in ipairs(prompt.parameters) do
    if rest ~= "" and not values[parameter.name] then
      values[parameter.name], rest = rest, ""
    end
  end
  for _, parameter in ipairs(prompt.parameters) do
    local problem = values[parameter.name] and unfit(parameter, values[parameter.name])
    if problem then
      return {}, problem
    end
  end
  return values, nil
end

---@param parameter CodeCompanion.PromptParameter
---@param done fun(value?: string) nil: the user cancelled
local function ask_one(parameter, done)
  local shown = parameter.description and parameter.description ~= "" and parameter.description or parameter.name
  if #(parameter.choices or {}) > 0 then
    return choose.select(parameter.choices, { prompt = shown, kind = "codecompanion.parameter" }, done)
  end
  choose.input({ prompt = shown .. ": ", default = parameter.default or "" }, done)
end

---Ask for the missing values.
---@param prompt CodeCompanion.Prompt
---@param values table<string, string>
---@param done fun(values?: table<string, string>) nil: the user cancelled a question
function M.ask(prompt, values, done)
  local function ask_next(position)
    local parameter = prompt.parameters[position]
    if not parameter then
      return done(values)
    elseif values[parameter.name] or parameter.optional then
      values[parameter.name] = values[parameter.name] or parameter.default or ""
      return ask_next(position + 1)
    end
    ask_one(parameter, function(value)
      if value == nil then
        return done(nil)
      end
      values[parameter.name] = value
      vim.schedule(function()
        ask_next(position + 1)
      end)
    end)
  end
  ask_next(1)
end

return M
