---`/undo`: take the newest change of the context back (R-361).

---@type CodeCompanion.SlashCommand
return {
  name = "undo",
  description = "Undo the newest edit, compaction, pin … of the chat",
  run = function(chat)
    require("codecompanion.chat.wire.history").undo(chat)
  end,
}
