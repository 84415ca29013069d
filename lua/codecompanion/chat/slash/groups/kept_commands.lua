---Slash commands for content that is kept: pins, memories, rules.

---@type CodeCompanion.SlashCommand[]
return {
  {
    name = "pin",
    description = "Pin an instruction, or the newest message",
    argument = "[text]",
    multiline = true,
    run = function(chat, argument, refuse)
      require("codecompanion.chat.wire.edit_view").pin(chat, { text = argument }, nil, refuse)
    end,
  },
  {
    name = "pins",
    description = "List the pins",
    run = function(chat)
      require("codecompanion.chat.lists.pinned_and_removed").pins(chat)
    end,
  },
  {
    name = "unpin",
    description = "Unpin a message by its number in /pins",
    argument = "<number>",
    run = function(chat, argument, refuse)
      local number = tonumber(argument)
      if number then
        require("codecompanion.chat.wire.edit_view").unpin(chat, { number = number }, nil, refuse)
      elseif argument ~= "" then
        refuse(("Nothing was unpinned: %q is not a number; /pins lists them."):format(argument))
      else
        require("codecompanion.chat.lists.pinned_and_removed").pins(chat)
      end
    end,
  },
  {
    name = "memory",
    description = "List the project's memory", -- R-446, R-447
    run = function(chat)
      require("codecompanion.pages.memory_page").open(chat.id)
    end,
  },
  {
    name = "rules",
    description = "Add a group of rules", -- R-549
    argument = "[group]",
    run = function(chat, argument, refuse)
      if argument == "" then
        return require("codecompanion.chat.lists.pickers").rules(chat)
      end
      require("codecompanion.chat.state.session").command(chat, "add_rules", { group = argument }, refuse)
    end,
  },
}
