---Slash commands: `/name argument`, alone in the input. Anything else that begins with `/` is ordinary text, so paths
---such as `/usr/bin` can be sent.

local M = {}

---@class CodeCompanion.SlashCommand
---@field name string
---@field description string
---@field argument? string How the argument is written
---@field multiline? boolean The argument may go on over several lines
---@field complete? fun(lead: string): string[] Values of the argument
---@field run fun(chat: CodeCompanion.Chat, argument: string)

local NAMES = {
  "compact",
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
  "continue",
  "fork",
  "title",
  "rename",
  "clear",
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

---Read an input as a command: one line, or a command that takes several.
---@param text string
---@return CodeCompanion.SlashCommand?
---@return string argument
function M.parse(text)
  local name, rest = vim.trim(text):match("^/([%w_-]+)(.*)$")
  local command = name and M.get(name)
  if not command or not (rest == "" or rest:find("^%s")) then
    return nil, ""
  end
  if rest:find("\n") and not command.multiline then
    return nil, ""
  end
  if rest ~= "" and not command.argument then
    return nil, ""
  end
  return command, vim.trim(rest)
end

---Carry out the command that stands in the input, if one does. The input is emptied.
---@param chat CodeCompanion.Chat
---@param text string
---@return boolean executed
function M.execute(chat, text)
  local command, argument = M.parse(text)
  if not command then
    return false
  end
  require("codecompanion.chat.draft").take(chat)
  command.run(chat, argument)
  return true
end

---Tell the user something about a command, in the buffer.
---@param chat CodeCompanion.Chat
---@param text string
function M.say(chat, text)
  require("codecompanion.chat.draw").append(chat, require("codecompanion.chat.blocks").notice(text, "warning"))
end

return M
