---`/help`: keys and commands.

---@type CodeCompanion.SlashCommand
return {
  name = "help",
  description = "Show keys and commands",
  run = function()
    require("codecompanion.chat.ui.keymaps").help()
  end,
}
