---`/policy [name]`: manage the chat's context by another policy (K1).

---@type CodeCompanion.SlashCommand
return {
  name = "policy",
  description = "Choose how the context is managed",
  argument = "[name]",
  complete = function(lead)
    return require("codecompanion.chat.lists.pickers").policy_names(lead)
  end,
  run = function(chat, argument, refuse)
    if argument == "" then
      require("codecompanion.chat.lists.pickers").policy(chat)
    else
      require("codecompanion.chat.state.session").command(chat, "set_policy", { policy = argument }, refuse)
    end
  end,
}
