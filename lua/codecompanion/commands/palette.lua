---The palette, `:CodeCompanion` and `:CodeCompanionActions`: lists every action that is possible here, by group, with
---the key or the command that does it. It uses `vim.ui.select`, so telescope, fzf-lua, snacks or mini.pick can display
---it.

local api = vim.api
local choice = require("codecompanion.adapters.default_adapter")
local choose = require("codecompanion.screen.choose")
local entries = require("codecompanion.commands.palette_entries")
local fit = require("codecompanion.text.fit")

local M = {}

local GROUP = "%-7s  "
local GROUP_WIDTH = 9
local BESIDE_TEXT = 2 -- cells that our own list leaves free beside its longest line
local NARROW = 50 -- cells beside the group
local MIN_TEXT = 20
local MAX_NAME = 80 -- of a chat or of a prompt of the user

---@param text string
---@param width integer
---@param shorten? fun(text: string, width: integer): string Without it, a longer text is kept
---@return string
local function cell(text, width, shorten)
  text = text:gsub("[%c]+", " ")
  text = shorten and shorten(text, width) or text
  return text .. (" "):rep(width - api.nvim_strwidth(text))
end

---Shorten the ways to call an action: to the first one, or by the folders of a prompt's file.
---@param from string
---@param width integer
---@return string May still be too long
local function shortened(from, width)
  if api.nvim_strwidth(from) <= width then
    return from
  end
  local before, path = from:match("^(.* · )(.*/.*)$")
  if before then
    return before .. fit.path(path, width - api.nvim_strwidth(before))
  end
  return from:match("^(.-)  ") or from
end

---Put the way to call an action beside its name: in its column, at the end of the row, or at the start of the next row.
---@param line string
---@param from string
---@param width integer
---@return string
local function beside(line, from, width)
  local left = width - api.nvim_strwidth(from)
  if api.nvim_strwidth(line) + 2 <= left then
    return line .. "  " .. from
  end
  local text = line:gsub("%s+$", "")
  return cell(text, api.nvim_strwidth(text) + 2 <= left and left or width + BESIDE_TEXT) .. from
end

---Return a formatter that aligns columns to the available width. A name wider than its column moves the way to call it
---to the right, or to the next row; on a narrow screen only the name is shown.
---@param actions CodeCompanion.Action[]
---@param width integer Available cells
---@return fun(action: CodeCompanion.Action): string
function M.formatter(actions, width)
  local longest, from_width = 10, 0
  for _, action in ipairs(actions) do
    longest = math.max(longest, api.nvim_strwidth(action.name))
    from_width = math.max(from_width, api.nvim_strwidth(action.from))
  end
  local room = math.max(20, width - GROUP_WIDTH)
  local is_narrow = room < NARROW
  local name_width = math.min(longest, is_narrow and room or math.floor(room * 0.35))
  from_width = is_narrow and 0 or math.min(from_width, math.floor(room * 0.4))
  local text_width = math.max(0, room - name_width - from_width - 4)
  if text_width < MIN_TEXT then -- too narrow to be readable; show only the name and how to call it
    name_width, text_width = is_narrow and name_width or math.min(longest, room - from_width - 2), 0
  end
  return function(action)
    local line = GROUP:format(action.group)
    if text_width > 0 and action.description ~= "" then
      line = line .. cell(fit.cut_words(action.name, MAX_NAME), name_width) .. "  "
      line = line .. cell(action.description, text_width, fit.cut_words)
    else
      local whole = text_width > 0 and name_width + 2 + text_width or name_width
      line = line .. cell(fit.cut_words(action.name, MAX_NAME), whole)
    end
    if from_width > 0 and action.from ~= "" then
      local from = shortened(action.from, width - api.nvim_strwidth(line) - 2)
      line = beside(line, from, width)
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
    -- our own list uses the whole screen; other pickers have borders, a prompt and marks
    local margin = choose.is_builtin_select() and 4 or 7
    choose.select(actions, {
      prompt = "CodeCompanion",
      kind = "codecompanion.actions",
      format_item = M.formatter(actions, vim.o.columns - margin),
      hanging = GROUP_WIDTH,
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
