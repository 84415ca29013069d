---Slash commands: `/name argument`, alone in the input. A word that is none is refused with the nearest name, so that a
---mistyped command is never sent. Paths such as `/usr/bin` or `/etc` are ordinary text, and so is what begins with a
---space.

local M = {}

---@class CodeCompanion.SlashCommand
---@field name string
---@field description string
---@field argument? string How the argument is written
---@field multiline? boolean The argument may go on over several lines
---@field many? boolean The argument is a list of words, each of which is completed
---@field complete? fun(lead: string): string[] Values of the argument
---@field run fun(chat: CodeCompanion.Chat, argument: string, refuse: fun(reason: string))

local NAMES = {
  "new",
  "resume",
  "title",
  "rename",
  "fork",
  "continue",
  "compact",
  "undo",
  "redo",
  "recall",
  "restore",
  "revert",
  "approvals",
  "clear",
  "adapter",
  "model",
  "policy",
  "pin",
  "pins",
  "unpin",
  "memory",
  "rules",
  "file",
  "buffer",
  "image",
  "cost",
  "trace",
  "help",
}

---All commands, in the order they are shown.
---@return CodeCompanion.SlashCommand[]
function M.list()
  return vim.tbl_map(function(name)
    return require("codecompanion.slash." .. name)
  end, NAMES)
end

---@param name string
---@return CodeCompanion.SlashCommand?
function M.get(name)
  return vim.list_contains(NAMES, name) and require("codecompanion.slash." .. name) or nil
end

---What is wrong with a command as it was typed.
---@param name string
---@param command? CodeCompanion.SlashCommand
---@param rest string What follows the name
---@return string? refusal
local function problem_of(name, command, rest)
  if not command then
    local near = require("codecompanion.config.nearest").word(name, NAMES)
    local advice = near and ("did you mean /%s?"):format(near) or "/help lists them."
    local text = "No command /%s; %s Nothing was sent. To send it as text, begin with a space."
    return text:format(name, advice)
  end
  if rest:find("\n") and not command.multiline then
    return ("/%s takes one line. Nothing was sent."):format(name)
  end
  if rest ~= "" and not command.argument then
    return ("/%s takes nothing after it. Nothing was sent. To send it as text, begin with a space."):format(name)
  end
end

---Read an input as a command.
---@param text string
---@return CodeCompanion.SlashCommand?
---@return string argument
---@return string? refusal Why it is a command that cannot be carried out
function M.parse(text)
  local word, rest = text:match("^\n*/(%S+)(.*)$")
  if not word or not word:find("^%a[%w_-]*$") then
    return nil, ""
  end
  local command = M.get(word)
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

---Carry out the command that stands in the input, if one does. The input is emptied; a command that is refused stays
---there, to be corrected.
---@param chat CodeCompanion.Chat
---@param text string
---@return boolean executed Nothing is to be sent
function M.execute(chat, text)
  local command, argument, refusal = M.parse(text)
  if refusal then
    M.say(chat, refusal)
    return true
  end
  if not command then
    return false
  end
  local draft = require("codecompanion.chat.wire.draft")
  draft.take(chat)
  command.run(chat, argument, function(reason)
    M.say(chat, reason)
    if require("codecompanion.chat.buffer.text").input_text(chat) == "" then
      draft.set(chat, text)
      require("codecompanion.chat.buffer.view").cursor_to_input(chat)
    end
  end)
  return true
end

---Tell the user something about a command, in the buffer.
---@param chat CodeCompanion.Chat
---@param text string
function M.say(chat, text)
  require("codecompanion.say").chat(chat, text, require("codecompanion.severity").WARN)
end

---The words of an argument; a space within a word is written `\\ `.
---@param argument string
---@return string[]
function M.words(argument)
  local found = {}
  for word in argument:gsub("\\ ", "\0"):gmatch("%S+") do
    found[#found + 1] = (word:gsub("%z", " "))
  end
  return found
end

return M
