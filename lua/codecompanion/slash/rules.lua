---`/rules [group]`: add a group of rules to the chat (R-549).

---@type CodeCompanion.SlashCommand
return {
  name = "rules",
  description = "Add a group of rules",
  argument = "[group]",
  run = function(chat, argument, refuse)
    if argument == "" then
      require("codecompanion.chat.lists.pickers").rules(chat)
    else
      require("codecompanion.chat.state.session").command(chat, "add_rules", { group = argument }, refuse)
    end
  end,
}
