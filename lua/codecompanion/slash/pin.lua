---`/pin [text]`: keep an instruction for the whole chat, or the newest message, through every compaction (R-361).

---@type CodeCompanion.SlashCommand
return {
  name = "pin",
  description = "Pin an instruction, or the newest message",
  argument = "[text]",
  multiline = true,
  run = function(chat, argument, refuse)
    require("codecompanion.chat.wire.history").pin(chat, { text = argument }, nil, refuse)
  end,
}
