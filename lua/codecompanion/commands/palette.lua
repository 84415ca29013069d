---The palette, `:CodeCompanion` and `:CodeCompanionActions`: one list of available actions: prompts, open chats and
---common commands. It uses `vim.ui.select`, so telescope, fzf-lua, snacks or mini.pick can display it.

local api = vim.api
local choice = require("codecompanion.adapters.default_adapter")
local choose = require("codecompanion.screen.choose")
local fit = require("codecompanion.text.fit")

local M = {}

local NARROW = 50 -- cells beside the group
local MIN_TEXT = 20

---@class CodeCompanion.Action
---@field group string
---@field name string
---@field description string
---@field from string Its source, "" for the plugin's own actions
---@field run fun()

---@param name string
---@param description string
---@param command string Without the leading colon
---@return CodeCompanion.Action
local function of_command(name, description, command)
  return {
    group = "command",
    name = name,
    description = description,
    from = ":" .. command,
    run = function()
      vim.cmd(command)
    end,
  }
end

---@param context CodeCompanion.PromptContext
---@return CodeCompanion.Action[]
local function prompts(context)
  local library = require("codecompanion.prompt_library")
  local found = {}
  for _, prompt in ipairs(library.list()) do
    if library.fits(prompt, context) then
      local slash = prompt.alias ~= "" and "/" .. prompt.alias .. " · " or ""
      local waits = prompt.state ~= "allowed" and "not trusted · " or ""
      found[#found + 1] = {
        group = "prompt",
        name = prompt.name,
        description = prompt.description ~= "" and prompt.description or prompt.beginning or "",
        from = waits .. slash .. prompt.label,
        run = function()
          require("codecompanion.commands.use_prompt").run(prompt, context)
        end,
      }
    end
  end
  return found
end

---@return CodeCompanion.Action[]
local function chats()
  local found = {}
  for _, chat in ipairs(require("codecompanion.chat").list()) do
    local title = chat.title ~= "" and chat.title or ("Chat " .. chat.name)
    found[#found + 1] = {
      group = "chat",
      name = title,
      description = chat.model ~= "" and ("%s · %s"):format(chat.adapter, chat.model) or chat.adapter,
      from = chat.state ~= "idle" and chat.state or "",
      run = function()
        require("codecompanion.chat").show(chat)
      end,
    }
  end
  return found
end

---@param has_model boolean
---@return CodeCompanion.Action
local function choose_model(has_model)
  local description = has_model and "Adapters and their requirements" or "No model is set up yet"
  return of_command("Choose a model", description, "CodeCompanion adapter")
end

---@param context CodeCompanion.PromptContext
---@return CodeCompanion.Action[]
local function commands(context)
  local found = {}
  if context.bufnr ~= 0 then
    found[#found + 1] = {
      group = "command",
      name = context.is_visual and "Edit the selection" or "Edit here",
      description = context.is_visual and "Describe the change" or "Describe the change around the cursor",
      from = ":CodeCompanion {words}",
      run = function()
        require("codecompanion.commands.use_prompt").edit("", context)
      end,
    }
  end
  if context.is_visual then
    found[#found + 1] = {
      group = "command",
      name = "Add the selection to a chat",
      description = "The last chat, or a new one",
      from = ":CodeCompanionChat",
      run = function()
        local range = { context.start_line, context.end_line }
        require("codecompanion.chat").add_selection(context.lines, range, api.nvim_buf_get_name(context.bufnr))
      end,
    }
  end
  vim.list_extend(found, {
    of_command("New chat", "Ask anything", "CodeCompanionChat New"),
    of_command("Resume a chat", "Open a stored chat", "CodeCompanionChat Resume"),
    of_command("Generate a command line", "Shown, not run", "CodeCompanionCmd"),
  })
  if require("codecompanion.commands.decide").can_reopen() then
    found[#found + 1] = of_command("Reopen a rejected change", "Propose it again", "CodeCompanion reopen")
  end
  if require("codecompanion.chat").current() then
    vim.list_extend(found, {
      of_command("Cost", "Show the cost of the chat", "CodeCompanionCost"),
      of_command("Compact", "Replace the conversation with a summary", "CodeCompanionCompact"),
      of_command("Changes", "List the file changes of the newest turn", "CodeCompanionChanges"),
    })
  end
  return found
end

---Return all actions that apply in the current context, group by group.
---@param context CodeCompanion.PromptContext
---@param has_model boolean Whether new chats have a model; otherwise choosing one comes first
---@return CodeCompanion.Action[]
function M.list(context, has_model)
  local found = has_model and {} or { choose_model(false) }
  vim.list_extend(found, prompts(context))
  vim.list_extend(found, chats())
  vim.list_extend(found, commands(context))
  if has_model then
    found[#found + 1] = choose_model(true)
  end
  return found
end

---@param text string
---@param width integer
---@param shorten? fun(text: string, width: integer): string
---@return string
local function cell(text, width, shorten)
  text = text:gsub("[%c]+", " ")
  text = api.nvim_strwidth(text) > width and (shorten or fit.cut)(text, width) or text
  return text .. (" "):rep(width - api.nvim_strwidth(text))
end

---Return a formatter that aligns columns to the screen width. On a narrow screen the name takes the space.
---@param actions CodeCompanion.Action[]
---@param columns integer Screen width
---@return fun(action: CodeCompanion.Action): string
function M.formatter(actions, columns)
  local longest, from_width = 10, 0
  for _, action in ipairs(actions) do
    longest = math.max(longest, api.nvim_strwidth(action.name))
    from_width = math.max(from_width, api.nvim_strwidth(action.from))
  end
  local room = math.max(20, columns - 16) -- borders, marks, the group
  local is_narrow = room < NARROW
  local name_width = math.min(longest, is_narrow and room or math.floor(room * 0.35))
  from_width = math.min(from_width, is_narrow and math.max(0, room - name_width - 2) or math.floor(room * 0.4))
  local text_width = math.max(0, room - name_width - from_width - 4)
  if text_width < MIN_TEXT and not is_narrow then -- too narrow to be readable; show only the name and how to call it
    name_width, text_width = math.min(longest, room - from_width - 2), 0
  end
  return function(action)
    local line = ("%-7s  %s"):format(action.group, cell(action.name, name_width, fit.squeeze))
    if text_width >= MIN_TEXT then
      line = ("%s  %s"):format(line, cell(action.description, text_width))
    end
    if from_width > 8 then
      line = ("%s  %s"):format(line, cell(action.from, from_width, fit.squeeze))
    end
    return (line:gsub("%s+$", ""))
  end
end

---Return whether new chats have a model, as far as is known without asking a configured server.
---@return boolean
local function has_model()
  local options = require("codecompanion.config").options
  if choice.is_automatic(options) then
    local made = choice.now(options)
    return made ~= nil and made.is_usable
  end
  local readiness = require("codecompanion.adapters.readiness")
  return readiness.seems_ready((choice.reference(options)), options.adapters.http)
end

---Open the palette.
---@param args? { range: integer, line1: integer, line2: integer } Arguments of the user command
function M.open(args)
  local context = require("codecompanion.prompt_library.prompt_context").look(args)
  if context.is_visual and api.nvim_get_mode().mode:find("^[vV\22]") then
    api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
  end
  local function show()
    local actions = M.list(context, has_model())
    choose.select(actions, {
      prompt = "CodeCompanion",
      kind = "codecompanion.actions",
      format_item = M.formatter(actions, vim.o.columns),
    }, function(action)
      if action then
        vim.schedule(action.run)
      end
    end)
  end
  require("codecompanion.prompt_library").refresh_if_stale(function()
    choice.when_known(require("codecompanion.config").options, show)
  end)
end

return M
