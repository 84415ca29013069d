---The palette (`:CodeCompanion` and `:CodeCompanionActions`), which lists every available action by group, with its key
---or command. It uses `vim.ui.select`, so telescope, fzf-lua, snacks or mini.pick can display it.

local api = vim.api
local choice = require("codecompanion.adapters.default_adapter")
local choose = require("codecompanion.screen.choose")
local entries = require("codecompanion.commands.palette_entries")
local fit = require("codecompanion.text.fit")

local M = {}

local NARROW = 50 -- cells beside the group
local MIN_TEXT = 20

---@param text string
---@param width integer
---@param shorten? fun(text: string, width: integer): string
---@return string
local function cell(text, width, shorten)
  text = text:gsub("[%c]+", " ")
  text = api.nvim_strwidth(text) > width and (shorten or fit.cut)(text, width) or text
  return text .. (" "):rep(width - api.nvim_strwidth(text))
end

---Return a formatter that aligns columns to the screen width. On a narrow screen, the name takes priority.
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
    local has_text = text_width >= MIN_TEXT
    local whole = action.description == "" and has_text and name_width + 2 + text_width or name_width
    local line = ("%-7s  %s"):format(action.group, cell(action.name, whole, fit.squeeze))
    if has_text and action.description ~= "" then
      line = ("%s  %s"):format(line, cell(action.description, text_width))
    end
    if from_width > 8 then
      line = ("%s  %s"):format(line, cell(action.from, from_width, fit.squeeze))
    end
    return (line:gsub("%s+$", ""))
  end
end

---Return whether new chats appear to have a model, without querying a configured server.
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
    local actions = entries.list(context, has_model())
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
