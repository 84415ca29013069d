---Slash commands that show reports: code to be gathered, cost, a trace, the help.

---@type CodeCompanion.SlashCommand[]
return {
  {
    name = "context",
    description = "Show the code sent with a question, and why", -- R-268; nothing is sent
    argument = "[question]",
    multiline = true,
    run = function(chat, argument, refuse)
      if argument ~= "" then
        require("codecompanion.chat.wire.draft").prepend(chat, argument) -- it has not been sent yet
      end
      require("codecompanion.chat.lists.gathered_code").preview(chat, argument, refuse)
    end,
  },
  {
    name = "cost",
    description = "Show the cost of the chat", -- R-356
    run = function(chat)
      require("codecompanion.chat.reports").cost(chat)
    end,
  },
  {
    name = "trace",
    description = "Show a turn request by request", -- R-357; the newest by default
    argument = "[turn]",
    run = function(chat, argument, refuse)
      require("codecompanion.chat.reports").trace(chat, argument, refuse)
    end,
  },
  {
    name = "help",
    description = "Show keys and commands; attach Neovim's help",
    argument = "[tag]",
    complete = function(lead)
      return require("codecompanion.chat.sources.help_tags").complete(lead)
    end,
    run = function(chat, argument, refuse, commands)
      if argument ~= "" then
        return require("codecompanion.chat.sources.attach_source").help(chat, argument, refuse)
      end
      require("codecompanion.chat.lists.chat_help").open(commands, chat.meter)
    end,
  },
}
