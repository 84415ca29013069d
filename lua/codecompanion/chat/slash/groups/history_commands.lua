---Slash commands that remove content from a chat, restore it, or revert file changes.

---@type CodeCompanion.SlashCommand[]
return {
  {
    name = "compact",
    description = "Replace the conversation with a summary", -- R-533
    argument = "[instructions]",
    multiline = true,
    run = function(chat, argument, refuse)
      require("codecompanion.chat.lists.compact_question").compact(chat, argument, false, refuse)
    end,
  },
  {
    name = "undo",
    description = "Undo the last context change, not file edits", -- R-361, as for the pins below
    run = function(chat)
      require("codecompanion.chat.wire.edit_view").undo(chat)
    end,
  },
  {
    name = "redo",
    description = "Redo the last undone change",
    run = function(chat)
      require("codecompanion.chat.wire.edit_view").redo(chat)
    end,
  },
  {
    name = "recall",
    description = "Search content removed from the context",
    argument = "[words]",
    run = function(chat, argument)
      require("codecompanion.chat.lists.pinned_and_removed").recall(chat, argument)
    end,
  },
  {
    name = "restore",
    description = "Open a checkpoint of this chat as a new chat",
    argument = "[checkpoint]",
    run = function(chat, argument, refuse)
      local resume = require("codecompanion.chat.life.resume")
      if argument ~= "" then
        return resume.restore(argument, nil, refuse)
      end
      require("codecompanion.chat.lists.pickers").checkpoint(chat.id, function(id)
        resume.restore(id)
      end)
    end,
  },
  {
    name = "revert",
    description = "List file changes and revert them",
    run = function(chat)
      require("codecompanion.chat.changed_files.change_list").open(chat)
    end,
  },
  {
    name = "approvals",
    description = "List the approvals you gave, and revoke them",
    run = function(chat)
      require("codecompanion.chat.lists.grants").open(chat)
    end,
  },
  {
    name = "clear",
    description = "Clear the chat (/undo restores it)", -- the history keeps everything
    run = function(chat)
      require("codecompanion.chat.state.session").clear(chat)
    end,
  },
}
