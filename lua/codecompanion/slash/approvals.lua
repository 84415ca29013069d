---`/approvals`: what "always" granted in this chat, to be taken back.

---@type CodeCompanion.SlashCommand
return {
  name = "approvals",
  description = "List what runs without asking, and take it back",
  run = function(chat)
    require("codecompanion.chat.lists.grants").open(chat)
  end,
}
