---`/redo`: let what was undone last count again.

---@type CodeCompanion.SlashCommand
return {
  name = "redo",
  description = "Redo the change that was undone last",
  run = function(chat)
    require("codecompanion.chat.wire.history").redo(chat)
  end,
}
