---Slash commands that show something: code that would be gathered, cost, a trace, the help.

---@type CodeCompanion.SlashCommand[]
return {
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
    run = function(_, _, _, commands)
      require("codecompanion.chat.ui.help").open(commands)
    end,
  },
}
