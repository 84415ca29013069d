---`/trace [turn]`: a turn call by call, the newest without a number (R-357).

---@type CodeCompanion.SlashCommand
return {
  name = "trace",
  description = "Show a turn call by call",
  argument = "[turn]",
  run = function(chat, argument, refuse)
    require("codecompanion.reports").trace(chat, argument, refuse)
  end,
}
