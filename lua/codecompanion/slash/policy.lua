---`/policy [name]`: manage the chat's context by another policy (K1).

---@type CodeCompanion.SlashCommand
return {
  name = "policy",
  description = "Choose how the context is managed",
  argument = "[name]",
  complete = function(lead)
    return require("codecompanion.chat.pickers").policy_names(lead)
  end,
  run = function(chat, argument, refuse)
    if argument == "" then
      require("codecompanion.chat.pickers").policy(chat)
    else
      require("codecompanion.chat.session").request(chat, "set_policy", { policy = argument }, function() end, refuse)
    end
  end,
}
