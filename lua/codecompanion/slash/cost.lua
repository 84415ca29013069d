---`/cost`: what the chat has cost, and what caching and context management saved (R-356).

---@type CodeCompanion.SlashCommand
return {
  name = "cost",
  description = "Show what the chat has cost",
  run = function(chat)
    require("codecompanion.reports").cost(chat)
  end,
}
