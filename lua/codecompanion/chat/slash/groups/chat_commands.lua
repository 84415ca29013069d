---Slash commands for a chat as a whole: open a new or stored one, rename it, copy it.

---Rename the chat; ask for the title if there is none.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
local function rename(chat, argument, refuse)
  require("codecompanion.chat.state.session").attach(chat)
  require("codecompanion.chat.lists.stored_chats").rename(chat.id, argument, { present = chat.title, refuse = refuse })
end

---@type CodeCompanion.SlashCommand[]
return {
  {
    name = "new",
    description = "Open a new chat", -- here; this one keeps running, and the keys for the next chat return to it
    run = function()
      require("codecompanion.chat.life").open({ layout = "here" })
    end,
  },
  {
    name = "resume",
    description = "Resume a stored chat",
    argument = "[title or id]",
    complete = function(lead)
      return require("codecompanion.chat.lists.resume_list").names(lead)
    end,
    run = function(_, argument, refuse)
      require("codecompanion.chat.life.resume").resume(argument, { check = true }, refuse)
    end,
  },
  {
    name = "rename",
    description = "Change the title of the chat",
    argument = "[text]",
    run = rename,
  },
  {
    name = "fork",
    description = "Continue in a copy; list: switch branches",
    argument = "[title | list]",
    complete = function()
      return { "list" }
    end,
    run = function(chat, argument, refuse)
      local fork = require("codecompanion.chat.life.fork")
      if argument == "list" then
        fork.list(chat)
      else
        fork.branch(chat, argument, refuse)
      end
    end,
  },
  {
    name = "continue",
    description = "Continue a reply that was cut off",
    run = function(chat, _, refuse)
      require("codecompanion.chat.state.session").continue_reply(chat, refuse)
    end,
  },
}
