---`/compact [instructions]`: replace the conversation by a summary of it (R-533).

---@type CodeCompanion.SlashCommand
return {
  name = "compact",
  description = "Replace the conversation by a summary",
  argument = "[instructions]",
  multiline = true,
  run = function(chat, argument, refuse)
    require("codecompanion.chat.lists.compact_question").compact(chat, argument, false, refuse)
  end,
}
