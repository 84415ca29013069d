---`/resume [id or title]`: bring a stored chat back.

---@type CodeCompanion.SlashCommand
return {
  name = "resume",
  description = "Resume a stored chat",
  argument = "[title or id]",
  complete = function(lead)
    return require("codecompanion.chat.lists.resume_list").names(lead)
  end,
  run = function(_, argument, refuse)
    require("codecompanion.chat.ui.resume").resume(argument, { check = true }, refuse)
  end,
}
