---Turns entries of `prompt_library` in the configuration, and the built-in ones, into prompts.

local NOT_USED = require("codecompanion.config.prompt_entries").NOT_USED

local M = {}

---@class CodeCompanion.PromptMessage
---@field role "system"|"user"
---@field text string|fun(context: CodeCompanion.PromptContext): string
---@field condition? fun(context: CodeCompanion.PromptContext): boolean
---@field contains_code? boolean The message is not sent while `opts.send_code` is false

---@class CodeCompanion.Prompt
---@field name string
---@field description string
---@field alias string Name of its slash command, or "" if it has none
---@field interaction "chat"|"inline"
---@field messages CodeCompanion.PromptMessage[]
---@field auto_submit boolean
---@field user_prompt string Question to ask before the prompt is used, or "" if there is none
---@field stop_context_insertion boolean
---@field is_slash_cmd boolean
---@field modes string[]
---@field filetypes string[]
---@field adapter string "" for the adapter of new chats
---@field model string
---@field parameters CodeCompanion.PromptParameter[]
---@field files string[] Files to attach
---@field rules string[]
---@field notes string[] Notes about its unused parts
---@field origin "built-in"|"configuration"|"user"|"project"
---@field label string Where it was defined
---@field state "allowed"|"waits"
---@field path? string Its file
---@field sha256? string
---@field beginning? string Beginning of text that is not loaded yet
---@field condition? fun(context: CodeCompanion.PromptContext): boolean Whether the prompt is offered
---@field run? fun(context: CodeCompanion.PromptContext) Called instead of sending anything

---@param value? string|string[]
---@return string[]
local function list(value)
  return type(value) == "string" and { value } or value or {}
end

---@param entry table
---@return CodeCompanion.PromptMessage[]
local function messages_of(entry)
  local found = {}
  for _, message in ipairs(entry.prompts or {}) do
    for _, one in ipairs(vim.islist(message) and message or { message }) do
      found[#found + 1] = {
        role = one.role,
        text = one.content,
        condition = one.condition,
        contains_code = type(one.opts) == "table" and one.opts.contains_code == true,
      }
    end
  end
  return found
end

---@param entry table
---@param path string
---@return string[]
local function notes_of(entry, path)
  local notes = {}
  local function note(key, why)
    notes[#notes + 1] = ("%s.%s is not used: %s."):format(path, key, why)
  end
  for key in pairs(entry) do
    if NOT_USED[key] then
      note(key, NOT_USED[key])
    end
  end
  for key in pairs(entry.opts or {}) do
    if NOT_USED["opts." .. key] then
      note("opts." .. key, NOT_USED["opts." .. key])
    end
  end
  for _, item in ipairs(entry.context or {}) do
    if item.type ~= "file" then
      note("context", ("only files are attached, not %q"):format(tostring(item.type)))
    end
  end
  if (entry.interaction or entry.strategy) == "workflow" then
    note("interaction", "all messages of a workflow are sent as one")
  end
  table.sort(notes)
  return notes
end

---Return text in a prompt that looks like a placeholder but is not one.
---@param prompt CodeCompanion.Prompt
---@param path string Key path of the text
---@return string[]
function M.unknown(prompt, path)
  local found = {}
  for _, message in ipairs(prompt.messages) do
    local unknown = require("codecompanion.prompt_library.prompt_text").unknown(message.text, prompt.parameters)
    for _, why in ipairs(unknown) do
      found[#found + 1] = ("%s: %s%s"):format(path, why, vim.endswith(why, "?") and "" or ".")
    end
  end
  return found
end

---Build a prompt from a checked entry.
---@param key string
---@param entry table
---@param origin "built-in"|"configuration"
---@return CodeCompanion.Prompt
function M.prompt(key, entry, origin)
  local opts = entry.opts or {}
  local alias = opts.alias or opts.short_name or (key:find("^%a[%w_-]*$") and key) or ""
  local files = {}
  for _, item in ipairs(entry.context or {}) do
    vim.list_extend(files, item.type == "file" and list(item.path) or {})
  end
  local adapter = opts.adapter or ""
  local parameters = vim.tbl_map(function(parameter)
    return type(parameter) == "string" and { name = parameter } or parameter
  end, entry.parameters or {})
  local asked = opts.user_prompt
  local path = ("prompt_library[%q]"):format(key)
  local prompt = {
    name = entry.name or key,
    description = entry.description or "",
    alias = alias,
    interaction = (entry.interaction or entry.strategy) == "inline" and "inline" or "chat",
    messages = messages_of(entry),
    auto_submit = opts.auto_submit == true,
    user_prompt = asked == true and "What should it focus on?" or asked or "",
    stop_context_insertion = opts.stop_context_insertion == true,
    is_slash_cmd = opts.is_slash_cmd ~= false,
    modes = list(opts.modes),
    filetypes = list(opts.filetypes),
    adapter = type(adapter) == "table" and adapter.name or adapter,
    model = type(adapter) == "table" and adapter.model or "",
    parameters = parameters,
    files = files,
    rules = list(entry.rules),
    notes = notes_of(entry, path),
    origin = origin,
    label = origin == "built-in" and "built-in" or "your configuration",
    state = "allowed",
    condition = entry.condition,
    run = entry.run,
  }
  if origin == "configuration" then
    vim.list_extend(prompt.notes, M.unknown(prompt, path))
  end
  return prompt
end

return M
