---Shows the help of a chat (`g?`, `/help`): the essential keys and commands, and the tools that are not sent. A second
---`g?` shows all keys, commands and slash commands.

local api = vim.api
local changes = require("codecompanion.changes.decision_keys")
local fit = require("codecompanion.text.fit")
local float = require("codecompanion.screen.float")
local keymaps = require("codecompanion.config.options.keymaps")
local keys = require("codecompanion.chat.state.configured_keys")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

---Maximum number of tool names that are listed.
local MAX_NAMES = 20
---The essential keys, in display order; the README also lists them.
local ESSENTIAL_KEYS = {
  "send",
  "stop",
  "change_adapter",
  "accept_change",
  "reject_change",
  "show_original",
  "revert_change",
  "debug",
}

local ESSENTIAL_COMMANDS = {
  { keys = ":CodeCompanion", text = "Palette: every command and its key" },
  { keys = ":CodeCompanion {words}", text = "Edit the selected lines, or those at the cursor" },
  { keys = ":CodeCompanionChat {words}", text = "Ask in a new chat; a range is attached" },
  { keys = ":CodeCompanionChat Resume", text = "Resume a stored chat" },
  { keys = ":CodeCompanionUndo", text = "Undo the last context change, not file edits" },
}
local ESSENTIAL_SLASH = { "file", "rules", "tools", "compact", "cost" }

---@class CodeCompanion.HelpRow
---@field name? string Of the action or the slash command
---@field keys string
---@field text string

---@param name string
---@param entry table
---@return string keys `<CR>, <C-s> (n i)`: each key once, with its modes unless it is only for Normal mode; "" if none
local function keys_of(name, entry)
  local order, modes = {}, {}
  for _, mode in ipairs({ "n", "i", "v" }) do
    for _, key in ipairs(entry.modes and keys.keys(name, mode) or {}) do
      order[#order + 1] = not modes[key] and key or nil
      modes[key] = modes[key] and modes[key] .. " " .. mode or mode
    end
  end
  local parts = vim.tbl_map(function(key)
    return modes[key] == "n" and key or ("%s (%s)"):format(key, modes[key])
  end, order)
  return table.concat(parts, ", ")
end

---Return the keys and their descriptions in the order of the option schema; user-defined keys last.
---@return CodeCompanion.HelpRow[]
local function key_rows()
  local rows, order = {}, {}
  for index, option in ipairs(keymaps.list()) do
    order[option.name] = index
  end
  for name, entry in pairs(keys.configured()) do
    local shown = entry and keys_of(name, entry) or ""
    if shown ~= "" then
      rows[#rows + 1] = { name = name, keys = shown, text = entry.description or name }
    end
  end
  table.sort(rows, function(a, b)
    local one, other = order[a.name] or 1000, order[b.name] or 1000
    return one < other or (one == other and a.name < b.name)
  end)
  for _, verb in ipairs(changes.described()) do
    rows[#rows + 1] = { name = verb.name, keys = verb.keys, text = verb.text }
  end
  return rows
end

---Return all commands, the essential ones first.
---@return CodeCompanion.HelpRow[]
local function command_rows()
  local rows, has = vim.list_slice(ESSENTIAL_COMMANDS), {}
  for _, row in ipairs(rows) do
    has[row.keys] = true
  end
  for _, one in ipairs(require("codecompanion.command_list").list()) do
    local shown = ":" .. one.command
    rows[#rows + 1] = not has[shown] and { keys = shown, text = one.text } or nil
  end
  return rows
end

---@param commands CodeCompanion.SlashCommand[]
---@return CodeCompanion.HelpRow[]
local function slash_rows(commands)
  return vim.tbl_map(function(command)
    local usage = "/" .. command.name .. (command.argument and (" " .. command.argument) or "")
    return { name = command.name, keys = usage, text = command.description }
  end, commands)
end

---Add two columns; in a narrow window the description is below its key.
---@param lines string[]
---@param rows CodeCompanion.HelpRow[]
---@param width integer
local function add_columns(lines, rows, width)
  local column = 0
  for _, row in ipairs(rows) do
    column = math.max(column, api.nvim_strwidth(row.keys))
  end
  local room = width - column - 4
  for _, row in ipairs(rows) do
    if room < 24 then
      lines[#lines + 1] = "  " .. row.keys
      for _, part in ipairs(fit.wrap(row.text, width - 6)) do
        lines[#lines + 1] = "      " .. part
      end
    else
      local parts = fit.wrap(row.text, room)
      lines[#lines + 1] = ("  %s%s  %s"):format(row.keys, (" "):rep(column - api.nvim_strwidth(row.keys)), parts[1])
      for index = 2, #parts do
        lines[#lines + 1] = (" "):rep(column + 4) .. parts[index]
      end
    end
  end
end

---@param meter CodeCompanion.Event.Meter?
---@return string sentence Reports which tools are not sent, and why; "" if all are sent
local function unsent_tools(meter)
  if meter and meter.no_tools then
    return ("No tools are sent: %s."):format(meter.no_tools)
  elseif meter and meter.held_back then
    local names = vim.list_slice(meter.held_back, 1, MAX_NAMES)
    if #names < #meter.held_back then
      names[#names + 1] = ("%d more"):format(#meter.held_back - #names)
    end
    return ("Tools not sent in this small window: %s. /tools full offers all."):format(table.concat(names, ", "))
  end
  return ""
end

---@param rows CodeCompanion.HelpRow[]
---@param names string[]
---@return CodeCompanion.HelpRow[] rows The rows with one of the names, in the order of the names
local function among(rows, names)
  local found = {}
  for _, name in ipairs(names) do
    for _, row in ipairs(rows) do
      found[#found + 1] = row.name == name and row or nil
    end
  end
  return found
end

---@class CodeCompanion.Help
---@field commands CodeCompanion.SlashCommand[]
---@field meter? CodeCompanion.Event.Meter Meter of the chat
---@field is_whole boolean Whether all keys and commands are shown, or only the essential ones

---@param help CodeCompanion.Help
---@param width integer Available cells
---@return string[]
local function help_lines(help, width)
  local lines, unsent = {}, unsent_tools(help.meter)
  local rows_of_keys, slash = key_rows(), slash_rows(help.commands)
  if unsent ~= "" then
    vim.list_extend(lines, fit.wrap(unsent, width))
    lines[#lines + 1] = ""
  end
  if not help.is_whole then
    rows_of_keys = among(rows_of_keys, ESSENTIAL_KEYS)
    slash = among(slash, ESSENTIAL_SLASH)
  end
  add_columns(lines, rows_of_keys, width)
  lines[#lines + 1] = ""
  add_columns(lines, help.is_whole and command_rows() or ESSENTIAL_COMMANDS, width)
  lines[#lines + 1] = ""
  vim.list_extend(lines, fit.wrap("At the start of the input:", width))
  add_columns(lines, slash, width)
  return lines
end

---@param help CodeCompanion.Help
---@return string[] lines
---@return integer width
local function layout(help)
  local most = math.max(20, vim.o.columns - 4)
  local lines, width = help_lines(help, most - 1), 30
  for _, line in ipairs(lines) do
    width = math.max(width, api.nvim_strwidth(line) + 1)
  end
  return lines, math.min(width, most)
end

---@param bufnr integer
local function colour(bufnr)
  scratch.colour(bufnr, "codecompanion.chat.help", function(line)
    return line:find("^  %S") and "CodeCompanionApprovalKey" or nil, 2, line:find("%S  ", 3) or #line
  end)
end

---@param help CodeCompanion.Help
local function show(help)
  local lines, width = layout(help)
  local whole_key = keys.keys("options", "n")[1] or "g?"
  local bufnr, win = float.open({
    title = help.is_whole and "Keys and commands" or "Help",
    lines = lines,
    width = width,
    layout = function()
      return layout(help)
    end,
    on_resize = colour,
    footer = help.is_whole and { "/ search", "q close" } or { whole_key .. " all keys", "q close" },
  })
  colour(bufnr)
  if not help.is_whole then
    scratch.map(bufnr, whole_key, "Show all keys and commands", function()
      scratch.close(win)
      show({ commands = help.commands, meter = help.meter, is_whole = true })
    end)
  end
end

---Show the essential keys and commands; pressing the help key again shows all.
---@param commands CodeCompanion.SlashCommand[] Commands to list
---@param meter CodeCompanion.Event.Meter? Meter of the chat
function M.open(commands, meter)
  show({ commands = commands, meter = meter, is_whole = false })
end

return M
