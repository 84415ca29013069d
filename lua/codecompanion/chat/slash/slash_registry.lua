---Lists all slash commands in display order: built-in ones by group, then user-defined ones, then those of other
---sources (prompts, servers). All are built and run the same way.
---
---A group is a module below `codecompanion.chat.slash.groups` that returns its commands, or a function that returns the
---current ones. `M.add` adds a group later.

local nearest = require("codecompanion.values.nearest")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

---@class CodeCompanion.SlashCommand
---@field name string Letters, digits, `_`, `-`; `server:name` for a command of a server
---@field description string
---@field argument? string Syntax of the argument
---@field multiline? boolean The argument may have several lines
---@field many? boolean The argument is a list of words, each of which is completed
---@field complete? fun(lead: string): string[] Returns completions of the argument
---@field run CodeCompanion.SlashRun

---@alias CodeCompanion.SlashRefuse fun(reason: string) Called with the reason for a failure; the command is put back
---into the input
---@alias CodeCompanion.SlashCommands CodeCompanion.SlashCommand[]
---@alias CodeCompanion.SlashRun
---| fun(chat: CodeCompanion.Chat, typed: string, refuse: CodeCompanion.SlashRefuse, all: CodeCompanion.SlashCommands)

---@alias CodeCompanion.SlashGroup CodeCompanion.SlashCommand[]|fun(): CodeCompanion.SlashCommand[]

local M = {}

---The built-in groups in display order.
local GROUPS = { "chat", "history", "model", "kept", "attach", "source", "report" }
---Former names of commands; they still work.
local FORMER_NAMES = { title = "rename" }

---@type { name: string, group: CodeCompanion.SlashGroup }[]
local more = {
  {
    name = "MCP servers",
    group = function()
      local known = package.loaded["codecompanion.host.mcp_servers"]
      return known and #known.servers > 0 and require("codecompanion.chat.slash.mcp_prompts").commands() or {}
    end,
  },
}
---@type table<string, boolean> Messages already shown
local said = {}

---@param text string
local function tell(text)
  if not said[text] then
    said[text] = true
    say.line({ text, (text:match("^([^:]+: [^;]+)")) }, severity.WARN)
  end
end

---@return CodeCompanion.SlashCommand[]
local function built_in()
  local found = {}
  for _, name in ipairs(GROUPS) do
    vim.list_extend(found, require("codecompanion.chat.slash.groups." .. name .. "_commands"))
  end
  return found
end

---Return the names of the built-in commands.
---@return table<string, boolean>
function M.built_in_names()
  local names = {}
  for _, command in ipairs(built_in()) do
    names[command.name] = true
  end
  return names
end

---Add a group; a group with the same name is replaced.
---@param name string Source of the commands, for messages: "the prompt library"
---@param group CodeCompanion.SlashGroup
function M.add(name, group)
  for _, entry in ipairs(more) do
    if entry.name == name then
      entry.group = group
      return
    end
  end
  more[#more + 1] = { name = name, group = group }
end

---@param entry { name: string, group: CodeCompanion.SlashGroup }
---@return CodeCompanion.SlashCommand[]
local function commands_of(entry)
  if type(entry.group) ~= "function" then
    return entry.group --[[@as CodeCompanion.SlashCommand[] ]]
  end
  local ok, found = pcall(entry.group)
  if ok and type(found) == "table" then
    return found
  end
  local why = ok and ("expected a list, got " .. type(found)) or tostring(found)
  tell(("The slash commands of %s are missing: %s"):format(entry.name, why))
  return {}
end

---Return all commands in display order. If two commands have the same name, the first is used and the conflict is
---reported.
---@return CodeCompanion.SlashCommand[]
function M.list()
  local own = require("codecompanion.chat.slash.own_commands")
  local configured = require("codecompanion.config").options.interactions.chat.slash_commands
  local found, by_name = {}, {}
  local function take(commands, whose)
    for _, command in ipairs(commands) do
      if by_name[command.name] then
        tell(("/%s of %s is left out: another command has that name."):format(command.name, whose))
      else
        by_name[command.name] = true
        if not own.is_off(configured, command.name) then
          found[#found + 1] = command
        end
      end
    end
  end
  take(built_in(), "the plugin")
  take(own.commands(configured, by_name), "your configuration")
  for _, entry in ipairs(more) do
    take(commands_of(entry), entry.name)
  end
  return found
end

---Return the problems with user-defined commands, with key paths.
---@return string[]
function M.problems()
  local configured = require("codecompanion.config").options.interactions.chat.slash_commands
  return require("codecompanion.chat.slash.own_commands").problems(configured, M.built_in_names())
end

---@param name string
---@return CodeCompanion.SlashCommand?
function M.get(name)
  local former
  for _, command in ipairs(M.list()) do
    if command.name == name then
      return command
    end
    former = command.name == FORMER_NAMES[name] and command or former
  end
  return former
end

---Return whether any command has this prefix, such as `mcp:` if a server provides prompts.
---@param prefix string
---@return boolean
function M.has_prefix(prefix)
  return vim.iter(M.list()):any(function(command)
    return vim.startswith(command.name, prefix)
  end)
end

---@param name string An unknown name
---@return string? name The command that was probably meant
function M.nearest(name)
  return nearest.word(
    name,
    vim.tbl_map(function(command)
      return command.name
    end, M.list())
  )
end

return M
