---The keys of chat buffers: taken from the config, each can be changed or switched off, `g?` lists them.

local api = vim.api
local fit = require("codecompanion.screen.fit")

local M = {}

---Keys that only exist while a question is open (`approval_keys`).
local APPROVAL = {
  approve_once = true,
  approve_always = true,
  approve_prefix = true,
  reject = true,
  cancel_all = true,
  show_diff = true,
}

---@return table<string, table|false>
local function configured()
  return require("codecompanion.chat.state.options").chat().keymaps or {}
end

---The keys of an action in a mode, none when it is switched off.
---@param name string
---@param mode string
---@return string[]
function M.keys(name, mode)
  local entry = configured()[name]
  local keys = entry and entry.modes and entry.modes[mode]
  if not keys then
    return {}
  end
  return type(keys) == "table" and keys or { keys }
end

---What an empty input says; what finds no room is left out, the help last.
---@param width integer
---@return string
function M.hint(width)
  local parts = {}
  for _, item in ipairs({ { "send", "send" }, { "options", "help" } }) do
    local key = M.keys(item[1], "n")[1]
    if key then
      parts[#parts + 1] = key .. " " .. item[2]
    end
  end
  while #parts > 1 and api.nvim_strwidth(table.concat(parts, " · ")) > width do
    table.remove(parts, 1)
  end
  return table.concat(parts, " · ")
end

---@param chat CodeCompanion.Chat
---@param name string
---@param entry table
local function set(chat, name, entry)
  if not entry.callback and not require("codecompanion.config.options.keymaps").is_builtin(name) then
    return
  end
  for mode, keys in pairs(entry.modes or {}) do
    for _, key in ipairs(type(keys) == "table" and keys or { keys }) do
      local opts = vim.tbl_extend("force", { silent = true, nowait = true }, entry.opts or {}, {
        buffer = chat.bufnr,
        desc = entry.description,
      })
      vim.keymap.set(mode, key, function()
        local action = entry.callback or require("codecompanion.chat.ui.actions")[name] -- loaded when a key is pressed
        action(chat)
      end, opts)
    end
  end
end

---Set the keys of a chat buffer.
---@param chat CodeCompanion.Chat
function M.set(chat)
  for name, entry in pairs(configured()) do
    if entry and not APPROVAL[name] then
      set(chat, name, entry)
    end
  end
end

---@class CodeCompanion.HelpRow
---@field keys string
---@field text string

---@param name string
---@param entry table
---@return string keys `<C-s> (i)`, "" when it has none
local function keys_of(name, entry)
  local parts = {}
  for _, mode in ipairs({ "n", "i", "v" }) do
    local keys = entry.modes and M.keys(name, mode) or {}
    if #keys > 0 then
      parts[#parts + 1] = table.concat(keys, " ") .. (mode == "n" and "" or (" (%s)"):format(mode))
    end
  end
  return table.concat(parts, "  ")
end

---The keys and what they do, in the order of the option schema; keys of the user's own last.
---@return CodeCompanion.HelpRow[]
local function key_rows()
  local rows, order = {}, {}
  for index, option in ipairs(require("codecompanion.config.options.keymaps").list()) do
    order[option.name] = index
  end
  for name, entry in pairs(configured()) do
    local keys = entry and keys_of(name, entry) or ""
    if keys ~= "" then
      rows[#rows + 1] = { name = name, keys = keys, text = entry.description or name }
    end
  end
  table.sort(rows, function(a, b)
    local one, other = order[a.name] or 1000, order[b.name] or 1000
    return one < other or (one == other and a.name < b.name)
  end)
  return rows
end

---@return CodeCompanion.HelpRow[]
local function slash_rows()
  return vim.tbl_map(function(command)
    local usage = "/" .. command.name .. (command.argument and (" " .. command.argument) or "")
    return { keys = usage, text = command.description }
  end, require("codecompanion.slash").list())
end

---Two columns; in a narrow window the text stands below its key.
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

---Lines for the help window.
---@param width? integer Cells there are
---@return string[]
function M.help_lines(width)
  width = width or 200
  local lines = {}
  add_columns(lines, key_rows(), width)
  vim.list_extend(lines, { "" })
  vim.list_extend(lines, fit.wrap("Slash commands, at the start of the input:", width))
  add_columns(lines, slash_rows(), width)
  return lines
end

---@return string[] lines
---@return integer width
local function layout()
  local most = math.max(20, vim.o.columns - 4)
  local lines, width = M.help_lines(most), 30
  for _, line in ipairs(lines) do
    width = math.max(width, api.nvim_strwidth(line) + 1)
  end
  return lines, math.min(width, most)
end

---@param bufnr integer
local function colour(bufnr)
  local ns = api.nvim_create_namespace("codecompanion.chat.help")
  api.nvim_buf_clear_namespace(bufnr, ns, 0, -1)
  for row, line in ipairs(api.nvim_buf_get_lines(bufnr, 0, -1, false)) do
    if line:find("^  %S") then
      local last = line:find("%S  ", 3) or #line
      api.nvim_buf_set_extmark(bufnr, ns, row - 1, 2, { end_col = last, hl_group = "CodeCompanionApprovalKey" })
    end
  end
end

---Show the keys.
function M.help()
  local lines, width = layout()
  local bufnr = require("codecompanion.screen.float").open({
    title = "Keys and slash commands",
    lines = lines,
    width = width,
    layout = layout,
    on_resize = colour,
    footer = { "q close" },
  })
  colour(bufnr)
end

return M
