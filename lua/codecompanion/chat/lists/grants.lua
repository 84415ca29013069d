---Lists the permissions granted with "always" in a chat, so that they can be revoked.

local api = vim.api
local blocks = require("codecompanion.chat.draw.blocks")
local float = require("codecompanion.screen.float")
local scope = require("codecompanion.chat.question.always_scope")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local visible = require("codecompanion.text.visible_characters")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

local HANGING = 4

---@param row table
---@return string
local function what_of(row)
  return scope.text(vim.tbl_extend("force", row.scope, row.scope.what == "" and { what = "every call" } or {}))
end

---@param rows table[]
---@return string[]
local function lines_of(rows)
  local width = 0
  for _, row in ipairs(rows) do
    width = math.max(width, api.nvim_strwidth(row.tool))
  end
  return vim.tbl_map(function(row)
    local tool = row.tool .. (" "):rep(width - api.nvim_strwidth(row.tool))
    local where = row.configured and "  · from your configuration" or ""
    return blocks.one_line(("%s  %s%s"):format(tool, visible.line(what_of(row)).text, where))
  end, rows)
end

---Return the keys; `K` is included if a command has several lines, which its row joins.
---@param rows table[]
---@return string[]
local function footer(rows)
  local hides = vim.iter(rows):any(function(row)
    return row.scope.what:find("\n", 1, true) ~= nil
  end)
  return hides and { "x revoke", "K show all", "q close" } or { "x revoke", "q close" }
end

---@param chat CodeCompanion.Chat
---@param done fun(rows: table[])
local function load(chat, done)
  session.request(chat, "list_grants", {}, done)
end

---@param chat CodeCompanion.Chat
---@param rows table[]
local function show(chat, rows)
  local title = "Runs without asking in this chat"
  local bufnr, win = float.open({
    title = title,
    lines = lines_of(rows),
    footer = function()
      return footer(rows)
    end,
    hanging = HANGING,
  })
  vim.wo[win].cursorline = true
  local on = scratch.keys(bufnr, win, function(line)
    return rows[line]
  end)
  on("x", "Revoke", function(row)
    session.request(chat, "revoke_grant", { grant = row.grant }, function(sentence)
      say.line(sentence)
      load(chat, function(left)
        rows = left
        if #rows == 0 then
          scratch.close(win)
        else
          float.update(win, lines_of(rows))
        end
      end)
    end)
  end)
  on("K", "Show the whole call", function(row)
    local lines = vim.tbl_map(function(line)
      return line.text
    end, visible.lines(what_of(row)))
    float.open({ title = row.tool, lines = lines, footer = "q close", filetype = "sh" })
  end)
end

---Report that no approvals were given, and the number of tools that run without asking.
---@param chat CodeCompanion.Chat
local function report_none(chat)
  session.request(chat, "list_tools", {}, function(listed)
    local count = #vim.tbl_filter(function(tool)
      return tool.sent and not tool.asks
    end, listed.tools)
    local said = "No approvals given in this chat"
    if chat.yolo then
      said = said .. "; YOLO mode runs tools without asking"
    elseif count > 0 then
      said = ("%s; %s without asking (/tools)"):format(said, count == 1 and "1 tool runs" or count .. " tools run")
    end
    say.line(said, severity.INFO)
  end)
end

---List the actions that run without asking.
---@param chat CodeCompanion.Chat
function M.open(chat)
  load(chat, function(rows)
    if #rows == 0 then
      return report_none(chat)
    end
    show(chat, rows)
  end)
end

return M
