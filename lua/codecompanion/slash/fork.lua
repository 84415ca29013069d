---`/fork [title]`: go on in a copy of the chat. `/fork list`: the branches of this chat, to switch between them.

---@type CodeCompanion.SlashCommand
return {
  name = "fork",
  description = "Go on in a copy; list: switch branches",
  argument = "[title | list]",
  complete = function()
    return { "list" }
  end,
  run = function(chat, argument, refuse)
    local fork = require("codecompanion.chat.ui.fork")
    if argument == "list" then
      fork.list(chat)
    else
      fork.branch(chat, argument, refuse)
    end
  end,
}
