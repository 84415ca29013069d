---`/policy [name]`: manage the chat's context by another policy (K1).

---@type CodeCompanion.SlashCommand
return {
  name = "policy",
  description = "Choose how the context is managed",
  argument = "[name]",
  run = function(chat, argument)
    if argument == "" then
      require("codecompanion.chat.pickers").policy(chat)
    else
      require("codecompanion.chat.session").request(chat, "set_policy", { policy = argument }, function() end)
    end
  end,
}
