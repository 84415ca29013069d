---Lists the changes made by a chat's tools, by turn; shows a change, or reverts it, its file or its turn.

local api = vim.api
local counts = require("codecompanion.changes.line_counts").text
local blocks = require("codecompanion.chat.draw.blocks")
local float = require("codecompanion.screen.float")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

local FOOTER = { "T whole turn", "F whole file", "K diff", "<CR> open", "Q quickfix", "q close" }

---Return whether reverting a row brings the tool's change back.
---@param row table
---@return boolean
local function reapplies(row)
  return (row.kind == "revert") ~= row.reverted
end

---@param row table
---@return string
local function state(row)
  return row.reverted and (row.kind == "revert" and "reapplied" or "reverted")
    or row.state == "unsaved" and "not saved"
    or (row.state == "interrupted" or row.state == "unknown") and "possibly not applied"
    or ""
end

---Return the lines and the change on each, newest turn first; reverts and reapplies are listed where they were made.
---@param rows table[] Newest first
---@return string[] lines
---@return table<integer, table> by_line
local function lines_of(rows)
  local name_width, count_width = 0, 0
  for _, row in ipairs(rows) do
    row.title = blocks.one_line((row.kind == "tool" and row.tool or row.kind) .. " " .. row.name)
    name_width = math.max(name_width, api.nvim_strwidth(row.title))
    count_width = math.max(count_width, api.nvim_strwidth(counts(row)))
  end
  local lines, by_line, turn = {}, {}, nil
  for _, row in ipairs(rows) do
    if row.turn ~= turn then
      turn = row.turn
      lines[#lines + 1] = ("Turn %d%s"):format(turn, row.question ~= "" and (" · " .. row.question) or "")
    end
    local pad = (" "):rep(name_width - api.nvim_strwidth(row.title))
    local count = counts(row) .. (" "):rep(count_width - api.nvim_strwidth(counts(row)))
    lines[#lines + 1] = vim.trim(("  %s%s  %s  %s"):format(row.title, pad, count, state(row))):gsub("^", "  ")
    by_line[#lines] = row
  end
  return lines, by_line
end

---@param bufnr integer
---@param by_line table<integer, table>
local function colour(bufnr, by_line)
  scratch.colour(bufnr, "codecompanion.files.list", function(line, number)
    local row = by_line[number]
    return not row and "Title" or row.reverted and "CodeCompanionUndone" or nil, 0, #line
  end)
end

---Keep the cursor on a change, which newer ones have moved down.
---@param win integer
---@param by_line table<integer, table>
---@param row? table
local function keep_cursor(win, by_line, row)
  for line, now in pairs(by_line) do
    if row and now.change_id == row.change_id then
      api.nvim_win_set_cursor(win, { line, 0 })
    end
  end
end

---@param chat CodeCompanion.Chat
---@param done fun(rows: table[])
local function load(chat, done)
  session.request(chat, "list_changes", {}, done)
end

---@param chat CodeCompanion.Chat
---@param rows table[]
local function show(chat, rows)
  local lines, by_line = lines_of(rows)
  local function row_at(line)
    return by_line[line] or by_line[line + 1]
  end
  local bufnr, win
  bufnr, win = float.open({
    title = "File changes",
    lines = lines,
    footer = function()
      local row = row_at(win and api.nvim_win_get_cursor(win)[1] or 1)
      return { row and reapplies(row) and "gX reapply" or "gX revert", unpack(FOOTER) }
    end,
  })
  colour(bufnr, by_line)
  api.nvim_create_autocmd("CursorMoved", {
    buffer = bufnr,
    callback = function()
      float.refoot(win)
    end,
  })
  api.nvim_win_set_cursor(win, { math.min(2, #lines), 0 })
  float.refoot(win)
  local revert = require("codecompanion.chat.changed_files.revert_changes")
  local on = scratch.keys(bufnr, win, row_at)
  local function close()
    scratch.close(win)
  end
  local function take_back(ids)
    revert.revert(chat, ids, nil, function(will_ask) -- the footer names the key that reapplies
      if will_ask then
        return close() -- the answer may open the file
      end
      load(chat, function(now)
        if api.nvim_win_is_valid(win) then
          local row = row_at(api.nvim_win_get_cursor(win)[1])
          rows = now
          lines, by_line = lines_of(rows)
          float.update(win, lines)
          colour(bufnr, by_line)
          keep_cursor(win, by_line, row)
          float.refoot(win)
        end
      end)
    end)
  end
  on(
    { "gX", unpack(require("codecompanion.changes.decision_keys").keys("reject_change", "n", bufnr)) },
    "Revert this change, or reapply it",
    function(row)
      take_back({ row.change_id })
    end
  )
  on("F", "Revert all changes of this file", function(row)
    take_back(revert.of_file(rows, row.path))
  end)
  on("T", "Revert all changes of this turn", function(row)
    take_back(revert.of_turn(rows, row.turn_id))
  end)
  local diff_keys = require("codecompanion.changes.decision_keys").keys("view_diff", "n", bufnr)
  on({ "K", unpack(diff_keys) }, "Show the diff", function(row)
    close()
    session.request(chat, "show_change", { change_id = row.change_id, texts = true }, function(shown)
      require("codecompanion.changes.change_view").open_recorded(shown, row.path)
    end)
  end)
  on("<CR>", "Open the file", function(row)
    close()
    require("codecompanion.screen.open_file").file(row.path)
  end)
  on("Q", "Put the changes of this turn into the quickfix list", function(row)
    close()
    require("codecompanion.chat.changed_files.changes_quickfix").fill(chat, { turn_id = row.turn_id })
  end)
end

---Open the list.
---@param chat CodeCompanion.Chat
function M.open(chat)
  load(chat, function(rows)
    if #rows == 0 then
      return say.line("No files were changed in this chat.")
    end
    show(chat, rows)
  end)
end

return M
