---The help of a chat (`g?`, `/help`): its keys, the slash commands, and the tools that are not sent.

local api = vim.api
local changes = require("codecompanion.changes.decision_keys")
local fit = require("codecompanion.text.fit")
local float = require("codecompanion.screen.float")
local keymaps = require("codecompanion.config.options.keymaps")
local keys = require("codecompanion.chat.state.configured_keys")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

---Names of tools that are listed.
local MAX_NAMES = 20

---@class CodeCompanion.HelpRow
---@field keys string
---@field text string

---@param name string
---@param entry table
---@return string keys `<C-s> (i)`, "" if it has none
local function keys_of(name, entry)
  local parts = {}
  for _, mode in ipairs({ "n", "i", "v" }) do
    local found = entry.modes and keys.keys(name, mode) or {}
    if #found > 0 then
      parts[#parts + 1] = table.concat(found, " ") .. (mode == "n" and "" or (" (%s)"):format(mode))
    end
  end
  return table.concat(parts, "  ")
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

---@param commands CodeCompanion.SlashCommand[]
---@return CodeCompanion.HelpRow[]
local function slash_rows(commands)
  return vim.tbl_map(function(command)
    local usage = "/" .. command.name .. (command.argument and (" " .. command.argument) or "")
    return { keys = usage, text = command.description }
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
---@return string sentence Which tools are not sent, and why; "" when all are
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

---@param commands CodeCompanion.SlashCommand[]
---@param meter CodeCompanion.Event.Meter?
---@param width integer Cells there are
---@return string[]
local function help_lines(commands, meter, width)
  local lines, unsent = {}, unsent_tools(meter)
  if unsent ~= "" then
    vim.list_extend(lines, fit.wrap(unsent, width))
    vim.list_extend(lines, { "" })
  end
  add_columns(lines, key_rows(), width)
  vim.list_extend(lines, { "" })
  vim.list_extend(lines, fit.wrap("Slash commands, at the start of the input:", width))
  add_columns(lines, slash_rows(commands), width)
  return lines
end

---@param commands CodeCompanion.SlashCommand[]
---@param meter CodeCompanion.Event.Meter?
---@return string[] lines
---@return integer width
local function layout(commands, meter)
  local most = math.max(20, vim.o.columns - 4)
  local lines, width = help_lines(commands, meter, most), 30
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

---Show the keys and the slash commands.
---@param commands CodeCompanion.SlashCommand[]
---@param meter CodeCompanion.Event.Meter? Of the chat
function M.open(commands, meter)
  local lines, width = layout(commands, meter)
  local bufnr = float.open({
    title = "Keys and slash commands",
    lines = lines,
    width = width,
    layout = function()
      return layout(commands, meter)
    end,
    on_resize = colour,
    footer = { "q close" },
  })
  colour(bufnr)
end

return M
