---Lists all commands with their descriptions, for `g?` and the palette: the user commands, the words that
---`:CodeCompanionChat` takes, and the subcommands of `:CodeCompanion`.

local sorted = require("codecompanion.values.sorted")

local M = {}

---@class CodeCompanion.ListedCommand
---@field command string With its subcommand, without the leading colon
---@field text string

---Descriptions of the first words of commands, by command.
---@type table<string, table<string, string>>
local WORDS = {
  CodeCompanion = {
    accept = "Accept the proposed change or tool call",
    adapter = "Choose an adapter, listed with its requirements",
    always = "Accept, and choose what to allow from now on",
    approval = "Go to the pending approval",
    approvals = "List the approvals you gave, and revoke them",
    audit = "Show the audit log of this chat",
    cancel = "Stop requests outside of chats",
    chat = "Open a chat",
    commit = "Write a commit message into the commit buffer",
    complete = "Turn completion at the cursor on or off",
    edits = "Open the chat of the last edit in place",
    export = "Export the chat to a file",
    health = "Check the installation and the configuration",
    help = "Open the manual",
    index = "Index the code in the current folder",
    install = "Recreate the Python environment",
    log = "Open the log file",
    login = "Log in to chatgpt or copilot, in a browser",
    logout = "Delete the stored login",
    mcp = "Show the MCP servers of the chat's folder",
    memory = "List the project's memory",
    problems = "List the problems of the configuration",
    reject = "Reject the proposed change or tool call",
    reopen = "Propose a rejected change again",
    restart = "Restart the Python process",
    restore = "Restore a chat from a checkpoint",
    resume = "Resume a stored chat",
    skip = "Skip the hunk under the cursor",
    stop = "Stop the Python process",
    toggle = "Show or hide the last chat",
    trust = "Review and trust the files of the folder",
  },
  CodeCompanionChat = {
    Add = "Add the selected lines to the chat",
    New = "Open a new chat",
    Resume = "Resume a stored chat",
    Toggle = "Show or hide the chat",
  },
}

---Commands that do the same as another one, which is listed in their place.
local ALIASES = {
  ["CodeCompanion chat"] = true,
  ["CodeCompanion restore"] = true,
  ["CodeCompanion resume"] = true,
  ["CodeCompanion toggle"] = true,
  CodeCompanionActions = true,
}

---Return a command with each of its first words, in alphabetical order and without aliases.
---@param command string
---@return CodeCompanion.ListedCommand[]
function M.with_words(command)
  local found = {}
  for word, text in sorted(WORDS[command] or {}) do
    local whole = command .. " " .. word
    found[#found + 1] = not ALIASES[whole] and { command = whole, text = text } or nil
  end
  return found
end

---Return the first clause of a user command's description, without alternatives and a note on its `!`.
---@param name string
---@return string
function M.text(name)
  local known = vim.api.nvim_get_commands({})[name]
  local plain = (known and known.definition or name):gsub(" %(!: .-%)", ""):gsub(", or .*", "")
  return plain:match("^(.-)[;:]") or plain
end

---Return all commands in alphabetical order, without aliases.
---@return CodeCompanion.ListedCommand[]
function M.list()
  local found = {}
  for name in sorted(vim.api.nvim_get_commands({})) do
    if vim.startswith(name, "CodeCompanion") and not ALIASES[name] then
      found[#found + 1] = { command = name, text = M.text(name) }
      vim.list_extend(found, M.with_words(name))
    end
  end
  return found
end

return M
