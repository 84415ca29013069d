---Builds the palette entries: edits in the current buffer, prompts, open chats, actions of the current chat, and all
---other commands.
---
---A feature that has a key, a slash command and a user command appears as one entry, with its key and the shorter
---command.

local api = vim.api
local command_list = require("codecompanion.command_list")

local M = {}

---@class CodeCompanion.Action
---@field group "edit"|"prompt"|"open"|"chat"|"plugin"
---@field name string Name shown in the palette
---@field description string Further description; may be ""
---@field from string Its keys and commands, or the source of a prompt
---@field run fun()

---Keymaps of the chat buffer that do the same as a slash command, by command name.
local KEY_OF_SLASH = { help = "options", clear = "clear", undo = "undo", redo = "redo", model = "change_adapter" }
---User commands that do the same as a slash command, by its name; both share one row.
local COMMAND_OF_SLASH = {
  new = ":CodeCompanionChat New",
  resume = ":CodeCompanionChat Resume",
  model = "",
  help = "", -- `:CodeCompanion help` opens the manual
}
---Keys that the palette leaves out, because they are used while writing or a slash command already covers them.
local NOT_FROM_A_LIST = { completion = true, codeblock = true, undo = true, redo = true }
---Verbs on a proposed change, by subcommand.
local VERB_OF = { accept = "accept_change", reject = "reject_change", skip = "skip_hunk", always = "always_accept" }
---User commands that need no chat and are not subcommands.
local USER_COMMANDS = { "CodeCompanionCmd", "CodeCompanionComplete" }
---User commands about the current chat that have no slash command.
local CHAT_COMMANDS = { "CodeCompanionChanges" }

---@param name string
---@param description string
---@param command string Without the leading colon
---@return CodeCompanion.Action
local function of_command(name, description, command)
  return {
    group = "plugin",
    name = name,
    description = description,
    from = ":" .. command,
    run = function()
      vim.cmd(command)
    end,
  }
end

---@param ways string[] Keys and commands; "" is left out
---@return string
local function joined(ways)
  return table.concat(
    vim.tbl_filter(function(way)
      return way ~= ""
    end, ways),
    "  "
  )
end

---Return the user command or subcommand equivalent to a slash command, including the colon, or "" if there is none.
---@param name string
---@return string
local function ex_command(name)
  if COMMAND_OF_SLASH[name] then
    return COMMAND_OF_SLASH[name]
  end
  local own = "CodeCompanion" .. name:sub(1, 1):upper() .. name:sub(2)
  if vim.fn.exists(":" .. own) == 2 then
    return ":" .. own
  end
  return require("codecompanion.commands.subcommands")[name] and ":CodeCompanion " .. name or ""
end

---@param context CodeCompanion.PromptContext
---@return CodeCompanion.Action[]
local function edits(context)
  if context.bufnr == 0 then
    return {}
  end
  local found = {
    {
      group = "edit",
      name = context.is_visual and "Edit the selection" or "Edit here",
      description = context.is_visual and "Describe the change" or "Describe the change around the cursor",
      from = ":CodeCompanion {words}",
      run = function()
        require("codecompanion.commands.use_prompt").edit("", context)
      end,
    },
  }
  if context.is_visual then
    found[2] = {
      group = "edit",
      name = "Add the selection to a chat",
      description = "The last chat, or a new one",
      from = ":CodeCompanionChat",
      run = function()
        local range = { context.start_line, context.end_line }
        require("codecompanion.chat").add_selection(context.lines, range, api.nvim_buf_get_name(context.bufnr))
      end,
    }
  end
  return found
end

---@param context CodeCompanion.PromptContext
---@return CodeCompanion.Action[] actions
---@return table<string, boolean> covered Subcommands that run one of these prompts
local function prompts(context)
  local library, named = require("codecompanion.prompt_library"), require("codecompanion.commands.subcommands")
  local found, covered = {}, {}
  for _, prompt in ipairs(library.list()) do
    if library.fits(prompt, context) then
      local slash = prompt.alias ~= "" and "/" .. prompt.alias or ""
      local is_ours = prompt.origin == "built-in"
      local label = is_ours and slash ~= "" and "" or prompt.label
      local command = is_ours and named[prompt.alias] and ":CodeCompanion " .. prompt.alias or ""
      covered[prompt.alias] = is_ours or nil
      local waits = prompt.state ~= "allowed" and "not trusted · " or ""
      found[#found + 1] = {
        group = "prompt",
        name = prompt.name,
        description = prompt.description ~= "" and prompt.description or prompt.beginning or "",
        from = waits .. joined({ slash .. (slash ~= "" and label ~= "" and " · " or "") .. label, command }),
        run = function()
          require("codecompanion.commands.use_prompt").run(prompt, context)
        end,
      }
    end
  end
  return found, covered
end

---@return CodeCompanion.Action[]
local function open_chats()
  local found, times = {}, {}
  for _, chat in ipairs(require("codecompanion.chat").list()) do
    local name = require("codecompanion.chat.state.chat_title").shown(chat.title)
    times[name] = (times[name] or 0) + 1
    found[#found + 1] = {
      group = "open",
      name = times[name] > 1 and ("%s (%d)"):format(name, times[name]) or name,
      description = chat.model ~= "" and ("%s · %s"):format(chat.adapter, chat.model) or chat.adapter,
      from = require("codecompanion.chat.state.chat_status").activity(chat, true):gsub(": .*", ""),
      run = function()
        require("codecompanion.chat").show(chat)
      end,
    }
  end
  return found
end

---Run a slash command as if it had been typed, or insert it into the input if it needs an argument.
---@param chat CodeCompanion.Chat
---@param command CodeCompanion.SlashCommand
local function run_slash(chat, command)
  local say, severity = require("codecompanion.say"), require("codecompanion.severity")
  if command.argument and command.argument:find("<", 1, true) then
    require("codecompanion.chat").show(chat)
    require("codecompanion.chat.wire.draft").prepend(chat, "/" .. command.name .. " ")
    require("codecompanion.chat.buffer.scroll").cursor_to_input(chat)
    return vim.cmd.startinsert({ bang = true })
  end
  command.run(chat, "", function(reason)
    say.chat(chat, reason, severity.WARN)
  end, require("codecompanion.chat.slash").list())
end

---@param chat CodeCompanion.Chat
---@param is_model_listed boolean Another row chooses an adapter and its model
---@return CodeCompanion.Action[] actions
---@return table<string, boolean> covered Names of the slash commands
local function slash_commands(chat, is_model_listed)
  local keys = require("codecompanion.chat.state.configured_keys")
  local library = require("codecompanion.prompt_library")
  local found, covered = {}, {}
  for _, command in ipairs(require("codecompanion.chat.slash").list()) do
    local has_row = is_model_listed and (command.name == "adapter" or command.name == "model")
    if not has_row and not library.find(command.name) then
      local key = KEY_OF_SLASH[command.name]
      covered[command.name] = command.name ~= "help" or nil
      found[#found + 1] = {
        group = "chat",
        name = command.description,
        description = "",
        from = joined({
          key and keys.keys(key, "n")[1] or "",
          "/" .. command.name,
          ex_command(command.name),
        }),
        run = function()
          run_slash(chat, command)
        end,
      }
    end
  end
  return found, covered
end

---Return the keys of the chat buffer that have no slash command.
---@param chat CodeCompanion.Chat
---@return CodeCompanion.Action[]
local function chat_keys(chat)
  local keys, found = require("codecompanion.chat.state.configured_keys"), {}
  local of_slash = vim.tbl_values(KEY_OF_SLASH)
  for _, option in ipairs(require("codecompanion.config.options.keymaps").list()) do
    local entry = keys.configured()[option.name]
    local mapped = entry and keys.keys(option.name, "n") or {}
    if #mapped > 0 and not NOT_FROM_A_LIST[option.name] and not vim.list_contains(of_slash, option.name) then
      found[#found + 1] = {
        group = "chat",
        name = entry.description or option.name,
        description = "",
        from = mapped[1],
        run = function()
          require("codecompanion.chat.ui.keymaps").run(chat, option.name, entry)
        end,
      }
    end
  end
  return found
end

---@param name string Name of a user command
---@param group "chat"|"plugin"
---@return CodeCompanion.Action
local function user_command(name, group)
  local action = of_command(command_list.text(name), "", name)
  action.group = group
  return action
end

---Return all subcommands that no other entry covers.
---@param covered table<string, boolean>
---@return CodeCompanion.Action[]
local function subcommands(covered)
  local found = {}
  local decision_keys = require("codecompanion.changes.decision_keys")
  for _, one in ipairs(command_list.with_words("CodeCompanion")) do
    local name = one.command:match("%S+$")
    if not covered[name] then
      local action = of_command(one.text, "", one.command)
      action.from = joined({ VERB_OF[name] and decision_keys.of(VERB_OF[name]) or "", action.from })
      found[#found + 1] = action
    end
  end
  return found
end

---Return all actions that apply in the current context, group by group.
---@param context CodeCompanion.PromptContext
---@param has_model boolean Whether new chats have a model; if not, choosing one is listed first
---@return CodeCompanion.Action[]
function M.list(context, has_model)
  local about = has_model and "Adapters and their requirements" or "No model is set up yet"
  local choose_adapter = of_command("Choose an adapter", about, "CodeCompanion adapter")
  local found = has_model and {} or { choose_adapter }
  vim.list_extend(found, edits(context))
  local of_prompts, covered = prompts(context)
  vim.list_extend(found, of_prompts)
  vim.list_extend(found, open_chats())
  covered.adapter = true
  if not require("codecompanion.commands.decide").can_reopen() then
    covered.reopen = true
  end
  local chat = require("codecompanion.chat").current()
  if chat then
    local of_chat, names = slash_commands(chat, not has_model)
    vim.list_extend(found, of_chat)
    covered = vim.tbl_extend("force", covered, names)
    if require("codecompanion.chat.state.open_chats").by_buffer() then
      vim.list_extend(found, chat_keys(chat))
      covered.trust, covered.approval = true, true -- they have keys
    end
    for _, name in ipairs(CHAT_COMMANDS) do
      found[#found + 1] = user_command(name, "chat")
    end
  end
  if not chat then -- otherwise slash commands do the same
    found[#found + 1] = of_command("Open a new chat", "", "CodeCompanionChat New")
    found[#found + 1] = of_command("Resume a stored chat", "", "CodeCompanionChat Resume")
    found[#found + 1] = has_model and choose_adapter or nil
  end
  found[#found + 1] = of_command("Show or hide the chat", "", "CodeCompanionChat Toggle")
  for _, name in ipairs(USER_COMMANDS) do
    found[#found + 1] = user_command(name, "plugin")
  end
  return vim.list_extend(found, subcommands(covered))
end

return M
