---Builds user-defined slash commands from `interactions.chat.slash_commands`: `{ callback, description, argument, … }`.
---
---The callback gets a handle instead of the chat itself: the fields of a chat may change, the handle is stable.

local attaching = require("codecompanion.chat.sources.attach_to_chat")
local buffer = require("codecompanion.chat.buffer.chat_text")
local draft = require("codecompanion.chat.wire.draft")
local message = require("codecompanion.chat.wire.send_message")
local say = require("codecompanion.say")
local send_code = require("codecompanion.editor_context.send_code")
local severity = require("codecompanion.severity")

local M = {}

local PATH = "interactions.chat.slash_commands.%s: "
---Commands of codecompanion.nvim that do not exist here; options for them are not reported as mistakes.
local ELSEWHERE = {
  acp_session_options = true,
  command = true,
  fetch = true,
  mcp = true,
  mode = true,
  now = true,
  quickfix = true,
  share = true,
  symbols = true,
  terminal = true,
  workspace = true,
}

---The chat as passed to the callback of a user-defined command.
---@class CodeCompanion.SlashChat
---@field id string
---@field bufnr integer
---@field attach fun(self: CodeCompanion.SlashChat, name: string, text: string) Attach text to the next request
---@field add_context fun(self: CodeCompanion.SlashChat, message: { content: string }, source: string, id?: string)
---@field insert fun(self: CodeCompanion.SlashChat, text: string) Insert text before the text of the input
---@field send fun(self: CodeCompanion.SlashChat, text: string) Send a message
---@field say fun(self: CodeCompanion.SlashChat, text: string) Show a sentence in the chat

---@param chat CodeCompanion.Chat
---@return CodeCompanion.SlashChat
local function handle(chat)
  local function text_of(what, value)
    if type(value) ~= "string" then
      error(("%s: got %s; expected a string"):format(what, type(value)), 3)
    end
    return value
  end
  local function attach(_, name, text)
    attaching.attach(chat, { kind = "text", path = text_of("name", name), text = text_of("text", text) })
  end
  return {
    id = chat.id,
    bufnr = chat.bufnr,
    attach = attach,
    add_context = function(_, added, source, id) -- the name in codecompanion.nvim
      local name = type(id) == "string" and (id:match("^<(.*)>$") or id) or source
      attach(nil, name, text_of("content", type(added) == "table" and added.content or nil))
    end,
    insert = function(_, text)
      draft.prepend(chat, text_of("text", text))
    end,
    send = function(_, text)
      buffer.ensure_input(chat)
      message.send(chat, text_of("text", text))
    end,
    say = function(_, text)
      say.chat(chat, text_of("text", text), severity.INFO)
    end,
  }
end

---List a failure of user-defined code in `:CodeCompanion problems`.
---@param name string
---@param what string
---@param why any
local function failed(name, what, why)
  require("codecompanion.config").failed((PATH .. "%s: %s"):format(name, what, tostring(why)))
end

---@param name string
---@param entry table
---@return fun(lead: string): string[]
local function completion(name, entry)
  return function(lead)
    local ok, found = pcall(entry.complete, lead)
    if ok and type(found) == "table" then
      return vim.tbl_map(tostring, found)
    end
    local why = ok and ("it returned %s; expected a list of strings"):format(type(found)) or tostring(found)
    failed(name, "`complete` failed", why)
    say.line({ (PATH .. "`complete` failed: %s"):format(name, why) }, severity.WARN)
    return {}
  end
end

---@param name string
---@param entry table
---@return CodeCompanion.SlashCommand
local function command(name, entry)
  return {
    name = name,
    description = entry.description or "Your own command",
    argument = entry.argument,
    multiline = entry.multiline,
    complete = entry.complete and completion(name, entry) or nil,
    run = function(chat, argument, refuse)
      if entry.opts.contains_code and not send_code.is_allowed() then
        return refuse(("/%s was not run: it sends code, and %s."):format(name, send_code.WHY))
      end
      local ok, answer = pcall(entry.callback, handle(chat), argument)
      if not ok then
        failed(name, "it failed", answer)
        refuse(("/%s failed: %s"):format(name, answer))
      elseif type(answer) == "string" then
        draft.prepend(chat, answer)
      elseif answer ~= nil then
        failed(name, "it returned", ("%s; expected a string for the input, or nothing"):format(type(answer)))
        refuse(("/%s returned %s; expected a string for the input, or nothing."):format(name, type(answer)))
      end
    end,
  }
end

---@param entry any
---@return boolean
local function is_enabled(entry)
  if type(entry) == "table" and type(entry.enabled) == "function" then
    local ok, answer = pcall(entry.enabled)
    return ok and answer == true
  end
  return type(entry) == "table" and entry.enabled ~= false
end

---Return whether the user has disabled a command.
---@param configured table<string, table|false>
---@param name string
---@return boolean
function M.is_off(configured, name)
  return configured[name] ~= nil and not is_enabled(configured[name])
end

---@param name string
---@param entry table|false
---@param built_in table<string, boolean>
---@return string? problem
local function problem_of(name, entry, built_in)
  local path = PATH:format(name)
  if not entry then
    return not built_in[name] and not ELSEWHERE[name] and path .. "no built-in command has this name" or nil
  elseif not name:find("^%a[%w_-]*$") then
    return path .. "a name must be a letter, then letters, digits, `_` or `-`"
  elseif built_in[name] then
    return entry.callback and path .. "a built-in command has this name; choose another one" or nil
  elseif not entry.callback then
    return not ELSEWHERE[name] and path .. "`callback` is missing; no built-in command has this name" or nil
  end
end

---Return the problems with user-defined commands, with key paths.
---@param configured table<string, table|false>
---@param built_in table<string, boolean>
---@return string[]
function M.problems(configured, built_in)
  local found = {}
  for name, entry in require("codecompanion.values.sorted")(configured) do
    found[#found + 1] = problem_of(name, entry, built_in)
  end
  return found
end

---Return the valid user-defined commands by name.
---@param configured table<string, table|false>
---@param built_in table<string, boolean>
---@return CodeCompanion.SlashCommand[]
function M.commands(configured, built_in)
  local found = {}
  for name, entry in require("codecompanion.values.sorted")(configured) do
    if entry and entry.callback and not problem_of(name, entry, built_in) then
      found[#found + 1] = command(name, entry)
    end
  end
  return found
end

return M
