---The slash commands, in the order they are shown. What a command needs is loaded when it is carried out.

local buffers = require("codecompanion.slash.buffers")
local paths = require("codecompanion.slash.paths")

---@class CodeCompanion.SlashCommand
---@field name string
---@field description string
---@field argument? string How the argument is written
---@field multiline? boolean The argument may go on over several lines
---@field many? boolean The argument is a list of words, each of which is completed
---@field complete? fun(lead: string): string[] Values of the argument
---@field run fun(chat: CodeCompanion.Chat, argument: string, refuse: fun(reason: string))

---Call the chat something; without a text the user is asked.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
local function rename(chat, argument, refuse)
  require("codecompanion.chat.state.session").attach(chat)
  require("codecompanion.chat.lists.stored").rename(chat.id, argument, { present = chat.title, refuse = refuse })
end

---@type CodeCompanion.SlashCommand[]
local M
M = {
  {
    name = "new",
    description = "Open a new chat in this window", -- this one goes on; the keys for the next chat lead to it
    run = function()
      require("codecompanion.chat.ui.life").open({ layout = "here" })
    end,
  },
  {
    name = "resume",
    description = "Resume a stored chat",
    argument = "[title or id]",
    complete = function(lead)
      return require("codecompanion.chat.lists.resume_list").names(lead)
    end,
    run = function(_, argument, refuse)
      require("codecompanion.chat.ui.resume").resume(argument, { check = true }, refuse)
    end,
  },
  {
    name = "title",
    description = "Set the title of the chat",
    argument = "[text]",
    run = rename,
  },
  {
    name = "rename",
    description = "Change the title of the chat",
    argument = "[text]",
    run = rename,
  },
  {
    name = "fork",
    description = "Go on in a copy; list: switch branches",
    argument = "[title | list]",
    complete = function()
      return { "list" }
    end,
    run = function(chat, argument, refuse)
      local fork = require("codecompanion.chat.ui.fork")
      if argument == "list" then
        fork.list(chat)
      else
        fork.branch(chat, argument, refuse)
      end
    end,
  },
  {
    name = "continue",
    description = "Continue a reply that was cut off",
    run = function(chat, _, refuse)
      require("codecompanion.chat.state.session").go_on(chat, refuse)
    end,
  },
  {
    name = "compact",
    description = "Replace the conversation by a summary", -- R-533
    argument = "[instructions]",
    multiline = true,
    run = function(chat, argument, refuse)
      require("codecompanion.chat.lists.compact_question").compact(chat, argument, false, refuse)
    end,
  },
  {
    name = "undo",
    description = "Undo the newest edit, compaction, pin … of the chat", -- R-361, as the pins below
    run = function(chat)
      require("codecompanion.chat.wire.history").undo(chat)
    end,
  },
  {
    name = "redo",
    description = "Redo the change that was undone last",
    run = function(chat)
      require("codecompanion.chat.wire.history").redo(chat)
    end,
  },
  {
    name = "recall",
    description = "Search what was removed from the context",
    argument = "[words]",
    run = function(chat, argument)
      require("codecompanion.chat.lists.recall").recall(chat, argument)
    end,
  },
  {
    name = "restore",
    description = "Open a checkpoint of this chat as a new chat",
    argument = "[checkpoint]",
    run = function(chat, argument, refuse)
      local resume = require("codecompanion.chat.ui.resume")
      if argument ~= "" then
        return resume.restore(argument, nil, refuse)
      end
      require("codecompanion.chat.lists.pickers").checkpoint(chat.id, function(id)
        resume.restore(id)
      end)
    end,
  },
  {
    name = "revert",
    description = "List file changes and revert them",
    run = function(chat)
      require("codecompanion.files.list").open(chat)
    end,
  },
  {
    name = "approvals",
    description = "List what runs without asking, and take it back",
    run = function(chat)
      require("codecompanion.chat.lists.grants").open(chat)
    end,
  },
  {
    name = "clear",
    description = "Clear the chat (/undo brings it back)", -- the history keeps everything
    run = function(chat)
      require("codecompanion.chat.state.session").clear(chat)
    end,
  },
  {
    name = "adapter",
    description = "Change the adapter",
    argument = "[name]",
    complete = function(lead)
      return require("codecompanion.chat.lists.models").adapters(lead)
    end,
    run = function(chat, argument, refuse)
      if argument == "" then
        return require("codecompanion.chat.lists.pickers").model(chat)
      end
      require("codecompanion.chat.lists.models").use_adapter(chat, argument, refuse)
    end,
  },
  {
    name = "model",
    description = "Change the model",
    argument = "[name]",
    complete = function(lead)
      return require("codecompanion.chat.lists.models").names(lead)
    end,
    run = function(chat, argument, refuse)
      if argument == "" then
        return require("codecompanion.chat.lists.pickers").model(chat)
      end
      require("codecompanion.chat.lists.models").use_model(chat, argument, refuse)
    end,
  },
  {
    name = "policy",
    description = "Choose how the context is managed", -- K1
    argument = "[name]",
    complete = function(lead)
      return require("codecompanion.chat.lists.pickers").policy_names(lead)
    end,
    run = function(chat, argument, refuse)
      if argument == "" then
        return require("codecompanion.chat.lists.pickers").policy(chat)
      end
      require("codecompanion.chat.state.session").command(chat, "set_policy", { policy = argument }, refuse)
    end,
  },
  {
    name = "pin",
    description = "Pin an instruction, or the newest message",
    argument = "[text]",
    multiline = true,
    run = function(chat, argument, refuse)
      require("codecompanion.chat.wire.history").pin(chat, { text = argument }, nil, refuse)
    end,
  },
  {
    name = "pins",
    description = "List the pins",
    run = function(chat)
      require("codecompanion.chat.lists.recall").pins(chat)
    end,
  },
  {
    name = "unpin",
    description = "Unpin a message by its number in /pins",
    argument = "<number>",
    run = function(chat, argument, refuse)
      local number = tonumber(argument)
      if number then
        require("codecompanion.chat.wire.history").unpin(chat, { number = number }, nil, refuse)
      elseif argument ~= "" then
        refuse(("Nothing was unpinned: %q is not a number; /pins lists them."):format(argument))
      else
        require("codecompanion.chat.lists.recall").pins(chat)
      end
    end,
  },
  {
    name = "memory",
    description = "List what compactions remembered", -- R-446, R-447; the chosen one is opened
    run = function()
      require("codecompanion.chat.lists.pickers").memory(function(path)
        require("codecompanion.files.show").file(path)
      end)
    end,
  },
  {
    name = "rules",
    description = "Add a group of rules", -- R-549
    argument = "[group]",
    run = function(chat, argument, refuse)
      if argument == "" then
        return require("codecompanion.chat.lists.pickers").rules(chat)
      end
      require("codecompanion.chat.state.session").command(chat, "add_rules", { group = argument }, refuse)
    end,
  },
  {
    name = "file",
    description = "Attach files or PDFs",
    argument = "[paths]",
    many = true,
    complete = paths.complete,
    run = paths.attach_files,
  },
  {
    name = "buffer",
    description = "Attach buffers, unsaved changes included",
    argument = "[names or numbers]",
    many = true,
    complete = buffers.complete,
    run = buffers.attach,
  },
  {
    name = "image",
    description = "Attach images",
    argument = "[paths]",
    many = true,
    complete = paths.complete_images,
    run = paths.attach_images,
  },
  {
    name = "context",
    description = "Show which code a question would get, and why", -- R-268; nothing is sent
    argument = "[question]",
    multiline = true,
    run = function(chat, argument, refuse)
      require("codecompanion.chat.lists.gathered").preview(chat, argument, refuse)
    end,
  },
  {
    name = "cost",
    description = "Show what the chat has cost", -- R-356
    run = function(chat)
      require("codecompanion.reports").cost(chat)
    end,
  },
  {
    name = "trace",
    description = "Show a turn call by call", -- R-357; the newest without a number
    argument = "[turn]",
    run = function(chat, argument, refuse)
      require("codecompanion.reports").trace(chat, argument, refuse)
    end,
  },
  {
    name = "help",
    description = "Show keys and commands",
    run = function()
      require("codecompanion.chat.ui.help").open(M)
    end,
  },
}

return M
