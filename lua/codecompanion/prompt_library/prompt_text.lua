---Turns the messages of a prompt into the text to send: fills in placeholders, and adds arguments and the selection.

local place = require("codecompanion.prompt_library.prompt_context")
local tame = require("codecompanion.prompt_library.outside_text")

local M = {}

---@param value any
---@return string
local function written(value)
  if type(value) == "table" then
    return table.concat(vim.tbl_map(tostring, value), "\n")
  end
  return tostring(value)
end

---Replace placeholders in one pass, so that values are never searched for placeholders. Unknown ones (`${HOME}`) stay
---unchanged.
---@param text string
---@param context CodeCompanion.PromptContext
---@param parameters table<string, string>
---@param argument string
---@return string
---@return boolean used_argument
---@return boolean used_code Whether the result contains buffer text
function M.fill(text, context, parameters, argument)
  local used_argument, used_code = false, false
  text = text:gsub("%${([%w_%.]+)}", function(name)
    if name == "arguments" then
      used_argument = true
      return argument
    end
    local room, field = name:match("^(%a+)%.([%w_]+)$")
    if room == "parameters" and parameters[field] then
      return parameters[field]
    elseif room == "context" and vim.list_contains(place.FIELDS, field) then
      used_code = used_code or field == "code" or field == "lines"
      return (tame.items(written(context[field]))) -- text from a file must not mention anything
    end
  end)
  return text, used_argument, used_code
end

---Return sentences about text in a prompt that looks like a placeholder but is not one and stays unchanged. A name
---without a dot that does not resemble a known one (`${HOME}`) is ordinary text.
---@param text any User-defined functions are not checked
---@param parameters CodeCompanion.PromptParameter[]
---@return string[]
function M.unknown(text, parameters)
  local names, found = { "arguments" }, {}
  for _, parameter in ipairs(parameters) do
    names[#names + 1] = "parameters." .. parameter.name
  end
  for _, field in ipairs(place.FIELDS) do
    names[#names + 1] = "context." .. field
  end
  for name in (type(text) == "string" and text or ""):gmatch("%${([%w_%.]+)}") do
    local near = require("codecompanion.values.nearest").word(name, names)
    if not vim.list_contains(names, name) and (near or name:find("^%a[%w_]*%.%a")) then
      local meant = near and ("did you mean ${%s}?"):format(near)
        or "expected ${arguments}, ${parameters.…} or ${context.…}"
      found[#found + 1] = ("${%s} is not a placeholder and is left as it is; %s"):format(name, meant)
    end
  end
  return found
end

---Return a fence that is longer than any inside the text.
---@param text string
---@return string
local function fence(text)
  local longest = 2
  for marks in text:gmatch("`+") do
    longest = math.max(longest, #marks)
  end
  return ("`"):rep(longest + 1)
end

---Return the selection, formatted for a message.
---@param context CodeCompanion.PromptContext
---@return string
function M.selection(context)
  local marks = fence(context.code)
  local name = context.filename == "" and "(no file)" or context.filename
  local head = ("%s:%d-%d"):format(name, context.start_line, context.end_line)
  return ("%s\n%s%s\n%s\n%s"):format(head, marks, context.filetype, context.code, marks)
end

---@param content string|fun(context: CodeCompanion.PromptContext): string
---@param context CodeCompanion.PromptContext
---@return string
local function content_of(content, context)
  if type(content) ~= "function" then
    return content
  end
  local text = content(context)
  if type(text) ~= "string" then
    error(("the function returned %s; expected a string"):format(type(text)), 0)
  end
  return text
end

---Build the system and user text of a prompt. Raises an error if a user-defined function fails.
---@param prompt CodeCompanion.Prompt
---@param context CodeCompanion.PromptContext
---@param given { parameters: table<string, string>, argument: string, more: string }
---@return string text The user message
---@return string system Instruction for the system prompt, or "" if there is none
---@return boolean sends_code Whether the prompt contains buffer text or is marked as containing code
function M.make(prompt, context, given)
  local parts, systems, has_argument, has_code, is_code = {}, {}, false, false, false
  for _, message in ipairs(prompt.messages) do
    if not message.condition or message.condition(context) then
      local content = content_of(message.text, context)
      local filled, argument, code = M.fill(content, context, given.parameters, given.argument)
      has_argument, has_code = has_argument or argument, has_code or code
      is_code = is_code or code or message.contains_code == true
      table.insert(message.role == "system" and systems or parts, vim.trim((filled:gsub("[ \t]+\n", "\n"))))
    end
  end
  if given.argument ~= "" and not has_argument and #prompt.parameters == 0 then
    parts[#parts + 1] = given.argument
  end
  if given.more ~= "" then
    parts[#parts + 1] = given.more
  end
  local text = table.concat(parts, "\n\n")
  if
    context.is_visual
    and not has_code
    and not prompt.stop_context_insertion
    and not text:find("#{selection", 1, true)
  then
    text, is_code = text .. "\n\n" .. M.selection(context), true
  end
  return text, table.concat(systems, "\n\n"), is_code
end

return M
