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
local NARROW = 60 -- cells of a row that has no group
local MIN_TEXT, MIN_NAME = 20, 8
local MAX_NAME = 80 -- of a chat or of a prompt of the user

---@param text string
---@param width integer
---@return string
local function cell(text, width)
  text = fit.cut_words((text:gsub("[%c]+", " ")), width)
  return text .. (" "):rep(width - api.nvim_strwidth(text))
end

---Shorten the keys and commands of an action: to the first one, or by the folders of a prompt's file.
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

---Put the key or command of an action beside its name. If there is not enough space, only the name is cut.
---@param name string
---@param from string
---@param width integer
---@param column integer Cells before the key or command, if the name has space there
---@return string
local function beside(name, from, width, column)
  from = shortened(from, math.max(width - math.max(column, api.nvim_strwidth(name)) - 2, 0))
  from = fit.squeeze(from, width - MIN_NAME - 2)
  local left = width - api.nvim_strwidth(from) - 2
  return cell(name, math.min(left, math.max(column, api.nvim_strwidth(name)))) .. "  " .. from
end

---Return a formatter for rows of at most this width: group, name, description, keys and commands. A narrow row has no
---group and no description; its key or command is at the right edge.
---@param actions CodeCompanion.Action[]
---@param width integer Available cells
---@return fun(action: CodeCompanion.Action): string
function M.formatter(actions, width)
  local longest, from_width = 10, 0
  for _, action in ipairs(actions) do
    longest = action.description ~= "" and math.max(longest, api.nvim_strwidth(action.name)) or longest
    from_width = math.max(from_width, api.nvim_strwidth(action.from))
  end
  local is_narrow = width < NARROW
  local room = is_narrow and width or width - GROUP_WIDTH
  local name_width = math.min(longest, math.floor(room * 0.35))
  from_width = math.min(from_width, math.floor(room * 0.4))
  local column = is_narrow and width or room - from_width - 2
  return function(action)
    local name = fit.cut_words((action.name:gsub("[%c]+", " ")), MAX_NAME)
    -- a description that is longer than its column uses the cells that the first key or command leaves free
    local most = math.max(column, room - api.nvim_strwidth(action.from:match("^(.-)  ") or action.from) - 2)
    if not is_narrow and most - name_width - 2 >= MIN_TEXT and action.description ~= "" then
      local both = cell(name, math.max(name_width, api.nvim_strwidth(name))) .. "  " .. action.description
      most = math.min(api.nvim_strwidth(both), most)
      name = cell(both, math.max(column, api.nvim_strwidth(name), most))
    end
    local row = action.from ~= "" and beside(name, action.from, room, column) or cell(name, room)
    return ((is_narrow and "" or GROUP:format(action.group)) .. row:gsub("%s+$", ""))
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
    local width = vim.o.columns - (choose.is_builtin_select() and 4 or 7)
    choose.select(actions, {
      prompt = "CodeCompanion",
      kind = "codecompanion.actions",
      format_item = M.formatter(actions, width),
      group_of = width < NARROW and function(action)
        return action.group
      end or nil,
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
