---Offers prompts as slash commands of a chat, after the built-in and the user-defined commands.

local library = require("codecompanion.prompt_library")

local M = {}

---@param prompt CodeCompanion.Prompt
---@return CodeCompanion.SlashCommand
local function command(prompt)
  local has_choices = #prompt.parameters > 0 and prompt.parameters[1].choices
  return {
    name = prompt.alias,
    description = ("%s (%s)"):format(prompt.description ~= "" and prompt.description or prompt.name, prompt.label),
    argument = #prompt.parameters > 0 and ("[%s]"):format(prompt.parameters[1].name) or "[words]",
    multiline = true,
    complete = has_choices and function()
      return has_choices
    end or nil,
    run = function(chat, argument, refuse)
      -- Its text may have changed since the names were loaded, so the files are read again.
      library.refresh_if_stale(function()
        require("codecompanion.chat.prompts.run_prompt").run(library.find(prompt.alias) or prompt, {
          context = require("codecompanion.prompt_library.prompt_context").look(),
          argument = argument,
          chat = chat,
          refuse = refuse,
        })
      end)
    end,
  }
end

---Return the current commands; prompt files are known once the host has answered.
---@return CodeCompanion.SlashCommand[]
function M.commands()
  return vim
    .iter(library.list())
    :filter(function(prompt)
      return prompt.alias ~= "" and prompt.is_slash_cmd and prompt.run == nil and prompt.state ~= "refused"
    end)
    :map(command)
    :totable()
end

---Load the prompt files for the slash commands of a new chat. Without prompt folders this does nothing.
function M.begin()
  require("codecompanion.chat.slash.slash_registry").add("the prompt library", M.commands)
  library.refresh_if_stale()
end

return M
