---Slash commands that choose the model and how the context is managed.

---@type CodeCompanion.SlashCommand[]
return {
  {
    name = "adapter",
    description = "Choose an adapter",
    argument = "[name]",
    complete = function(lead)
      return require("codecompanion.chat.lists.models").adapters(lead)
    end,
    run = function(chat, argument, refuse)
      if argument == "" then
        return require("codecompanion.chat.life.choose_adapter").open()
      end
      require("codecompanion.chat.lists.models").use_adapter(chat, argument, refuse)
    end,
  },
  {
    name = "model",
    description = "Choose a model",
    argument = "[name]",
    complete = function(lead)
      return require("codecompanion.chat.lists.models").names(lead)
    end,
    run = function(chat, argument, refuse)
      if argument == "" then
        return require("codecompanion.chat.lists.pickers").model(chat)
      end
      require("codecompanion.chat.lists.models").use_model(chat, argument, refuse)
    end,
  },
  {
    name = "tools",
    description = "Choose the tools to offer, and see their token counts",
    argument = "[names]",
    many = true,
    complete = function(lead)
      local chat = require("codecompanion.chat.state.open_chats").by_buffer()
      local found = {}
      for _, one in ipairs(chat and require("codecompanion.chat.lists.tool_list").names(chat) or {}) do
        if vim.startswith(one.name, lead) then
          found[#found + 1] = one.name
        end
      end
      return found
    end,
    run = function(chat, argument, refuse)
      require("codecompanion.chat.lists.tool_list").open(chat, argument, refuse)
    end,
  },
  {
    name = "policy",
    description = "Choose the context management policy", -- K1
    argument = "[name]",
    complete = function(lead)
      return require("codecompanion.chat.lists.pickers").policy_names(lead)
    end,
    run = function(chat, argument, refuse)
      if argument == "" then
        return require("codecompanion.chat.lists.pickers").policy(chat)
      end
      require("codecompanion.chat.state.session").command(chat, "set_policy", { policy = argument }, refuse)
    end,
  },
}
