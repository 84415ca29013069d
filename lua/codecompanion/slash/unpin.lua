---`/unpin <n>`: unpin what `/pins` lists under this number (R-361).

---@type CodeCompanion.SlashCommand
return {
  name = "unpin",
  description = "Unpin a message by its number in /pins",
  argument = "<number>",
  run = function(chat, argument, refuse)
    local number = tonumber(argument)
    if number then
      require("codecompanion.chat.wire.history").unpin(chat, { number = number }, nil, refuse)
    elseif argument ~= "" then
      refuse(("Nothing was unpinned: %q is not a number; /pins lists them."):format(argument))
    else
      require("codecompanion.chat.lists.recall").pins(chat)
    end
  end,
}
