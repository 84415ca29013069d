---Runs slash commands: `/name argument`, alone in the input. An unknown name is refused, and the nearest known name is
---suggested, so that a mistyped command is never sent. Paths such as `/usr/bin` or `/etc` are ordinary text, and so is
---text that begins with a space.

local buffer = require("codecompanion.chat.buffer.chat_text")
local draft = require("codecompanion.chat.wire.draft")
local registry = require("codecompanion.chat.slash.slash_registry")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---Return all commands in display order.
M.list = registry.list
M.get = registry.get

---Return the problem with a command as typed.
---@param name string
---@param command? CodeCompanion.SlashCommand
---@param rest string Text after the name
---@return string? refusal
local function problem_of(name, command, rest)
  if not command then
    local near = registry.nearest(name)
    local advice = near and ("did you mean /%s?"):format(near) or "/help lists them."
    local text = "No command /%s; %s Nothing was sent. To send it as text, begin with a space."
    return text:format(name, advice)
  end
  if rest:find("\n") and not command.multiline then
    return ("/%s takes one line. Nothing was sent."):format(name)
  end
  if rest ~= "" and not command.argument then
    return ("/%s takes no argument. Nothing was sent. To send it as text, begin with a space."):format(name)
  end
end

---Parse an input as a command.
---@param text string
---@return CodeCompanion.SlashCommand?
---@return string argument
---@return string? refusal Why the command cannot run
function M.parse(text)
  local word, rest = text:match("^\n*/(%S+)(.*)$")
  if not word or not word:find("^%a[%w_:-]*$") then
    return nil, ""
  end
  local command = M.get(word)
  if not command and word:find(":") and not registry.has_prefix(word:match("^[^:]*:")) then
    return nil, "" -- no server provides commands with this prefix
  end
  if not command and vim.uv.fs_stat("/" .. word) then
    return nil, "" -- a path: `/tmp is full`
  end
  rest = vim.trim(rest)
  local refusal = problem_of(word, command, rest)
  if refusal then
    return nil, "", refusal
  end
  return command, rest
end

---Run the command in the input, if there is one, and clear the input; a refused command stays there, to be corrected.
---@param chat CodeCompanion.Chat
---@param text string
---@return boolean executed If true, the caller must not send the input
function M.execute(chat, text)
  local command, argument, refusal = M.parse(text)
  if refusal then
    say.chat(chat, refusal, severity.WARN)
    return true
  end
  if not command then
    return false
  end
  draft.take(chat)
  command.run(chat, argument, function(reason)
    say.chat(chat, reason, severity.WARN)
    if buffer.input_text(chat) == "" then
      draft.prepend(chat, text)
    end
  end, registry.list())
  return true
end

return M
