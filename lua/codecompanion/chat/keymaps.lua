---The keys of chat buffers: taken from the config, each can be changed or switched off, `?` lists them.

local api = vim.api

local M = {}

---Keys that only exist while a question is open (`approval_keys`).
local APPROVAL = {
  next_approval = true,
  approve_once = true,
  approve_always = true,
  reject = true,
  cancel_all = true,
}

---@return table<string, table|false>
local function configured()
  return require("codecompanion.chat.options").chat().keymaps or {}
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

---What an empty input says.
---@return string
function M.hint()
  local parts = {}
  for _, item in ipairs({ { "send", "send" }, { "options", "help" } }) do
    local key = M.keys(item[1], "n")[1]
    if key then
      parts[#parts + 1] = key .. " " .. item[2]
    end
  end
  return table.concat(parts, " · ")
end

---@param chat CodeCompanion.Chat
---@param name string
---@param entry table
local function set(chat, name, entry)
  local action = entry.callback or require("codecompanion.chat.actions")[name]
  if not action then
    return
  end
  for mode, keys in pairs(entry.modes or {}) do
    for _, key in ipairs(type(keys) == "table" and keys or { keys }) do
      local opts = vim.tbl_extend("force", { silent = true, nowait = true }, entry.opts or {}, {
        buffer = chat.bufnr,
        desc = entry.description,
      })
      vim.keymap.set(mode, key, function()
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

---Lines for the help window: keys and what they do, in the order of the option schema.
---@return string[]
function M.help_lines()
  local rows, width = {}, 0
  for name, entry in pairs(configured()) do
    if entry and entry.modes then
      local parts = {}
      for _, mode in ipairs({ "n", "i", "v" }) do
        local keys = M.keys(name, mode)
        if #keys > 0 then
          parts[#parts + 1] = table.concat(keys, " ") .. (mode == "n" and "" or (" (%s)"):format(mode))
        end
      end
      local text = table.concat(parts, "  ")
      if text ~= "" then
        width = math.max(width, api.nvim_strwidth(text))
        rows[#rows + 1] = { name = name, keys = text, text = entry.description or name }
      end
    end
  end
  local order = {}
  local ok, known = pcall(require, "codecompanion.config.options.keymaps")
  for index, option in ipairs(ok and known.list() or {}) do
    order[option.name] = index
  end
  table.sort(rows, function(a, b)
    local one, other = order[a.name] or 1000, order[b.name] or 1000
    return one < other or (one == other and a.name < b.name)
  end)
  local lines = {}
  for _, row in ipairs(rows) do
    lines[#lines + 1] = ("  %s%s  %s"):format(row.keys, (" "):rep(width - api.nvim_strwidth(row.keys)), row.text)
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = "  Slash commands, alone at the start of the input:"
  for _, command in ipairs(require("codecompanion.slash").list()) do
    local usage = "/" .. command.name .. (command.argument and (" " .. command.argument) or "")
    lines[#lines + 1] = ("  %-26s %s"):format(usage, command.description)
  end
  return lines
end

---Show the keys.
function M.help()
  local lines = M.help_lines()
  local width = 40
  for _, line in ipairs(lines) do
    width = math.max(width, api.nvim_strwidth(line) + 2)
  end
  local bufnr = require("codecompanion.chat.float").open({
    title = "CodeCompanion",
    lines = lines,
    width = math.min(width, vim.o.columns - 4),
    footer = "q close",
  })
  local ns = api.nvim_create_namespace("codecompanion.chat.help")
  for row, line in ipairs(lines) do
    local from, to = line:match("^  ()%S.-()  ")
    if from then
      local opts = { end_col = to - 1, hl_group = "CodeCompanionApprovalKey" }
      api.nvim_buf_set_extmark(bufnr, ns, row - 1, from - 1, opts)
    end
  end
end

return M
