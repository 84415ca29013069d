---Builds the block of a tool call, as `blocks.lua` does for other content: its line, and its output in a fold.

local api = vim.api
local blocks = require("codecompanion.chat.draw.blocks")
local fit = require("codecompanion.text.fit")
local keys = require("codecompanion.chat.state.configured_keys")
local numbers = require("codecompanion.text.numbers")
local options = require("codecompanion.chat.state.chat_options")

local M = {}

---Text in the line of an item that is not sent, or not sent in full.
local CLEARED, CUT = " · cleared", " · cut to %d %%"
M.LOST = " · since removed"

---Text in the line of a reverted file change.
local REVERTED, UNSAVED = " · reverted", " · not saved"

local MIN_TITLE = 12
---Minimum number of cells between a line and the text at its right edge.
local MIN_GAP = 2
---Width in cells below which a line omits the words that its sign replaces.
local NARROW = 60

local MAX_BODY_LINES = 400
local MAX_BODY_BYTES = 64 * 1024
local MAX_LINE_BYTES = 2000
local MAX_REASON_BYTES = 200

---Outcomes of a stopped call that explain why it has no result.
local STOPPED = { interrupted = true, ["not answered"] = true }
local STATES = {
  running = { "… ", "CodeCompanionActivity" },
  ok = { "✓ ", "CodeCompanionToolOk" },
  error = { "✗ ", "CodeCompanionToolFailed" },
  cancelled = { "⊘ ", "CodeCompanionToolStopped" },
  rejected = { "⊘ ", "CodeCompanionToolStopped" },
}

---States of a call whose line shows why it has no result.
local HAS_REASON = { error = true, rejected = true }

---Keep the head and tail of a string that is too long to show (lesson 47).
---@param text string
---@return string[]
local function bounded(text)
  if #text > MAX_BODY_BYTES then
    local half = MAX_BODY_BYTES / 2
    local left_out = #text - 2 * half
    local note = ("\n… %s more · K shows all …\n"):format(numbers.counted(left_out, "byte"))
    text = text:sub(1, half) .. note .. text:sub(-half)
  end
  local lines = blocks.split(text)
  if lines[#lines] == "" then
    lines[#lines] = nil
  end
  if #lines > MAX_BODY_LINES then
    local half = MAX_BODY_LINES / 2
    local short = vim.list_slice(lines, 1, half)
    short[#short + 1] = ("… %s more · K shows all …"):format(numbers.counted(#lines - 2 * half, "line"))
    lines = vim.list_extend(short, lines, #lines - half + 1)
  end
  for index, line in ipairs(lines) do
    if #line > MAX_LINE_BYTES then
      lines[index] = line:sub(1, MAX_LINE_BYTES + vim.str_utf_end(line, MAX_LINE_BYTES)) .. " …"
    end
  end
  return lines
end

---Return why a call failed: the first line of its error, shortened, without the full stop and the file named in the
---title.
---@param text? string
---@param title string
---@return string
local function reason_of(text, title)
  local line = vim.trim(blocks.plain((vim.trim(text or ""):match("^[^\r\n]*"):gsub("%s+", " ")))):gsub("%.$", "")
  local file = title:match("%s(%S+)$")
  if file and #line > #file + 1 and vim.startswith(line, file) then
    line = line:sub(#file + 1):gsub("^:?%s+", "")
  elseif file then
    line = line:gsub("( file) " .. vim.pesc(file) .. "%f[.:,%s%z]", "%1", 1)
  end
  if #line > MAX_REASON_BYTES then
    line = line:sub(1, MAX_REASON_BYTES + vim.str_utf_end(line, MAX_REASON_BYTES)) .. "…"
  end
  return line
end

---Return the outcome of a call for its line, with the reason if it failed or was rejected.
---@param tool table
---@return string
local function summary_of(tool)
  local summary, status = blocks.one_line(tool.summary or ""), tool.status
  if status == "error" and (summary == "" or summary == "failed") then
    local reason = reason_of(tool.preview, tool.title)
    summary = reason == "" and "failed" or "failed: " .. reason
  elseif status == "error" and not vim.startswith(summary, "failed") then
    summary = "failed: " .. summary
  elseif status == "rejected" and not vim.startswith(summary, status) then
    summary = summary == "" and status or ("%s: %s"):format(status, summary)
  elseif status == "cancelled" and not STOPPED[summary] and not summary:find(status, 1, true) then
    summary = summary == "" and status or ("%s · %s"):format(status, summary)
  end
  return summary ~= "" and (" · " .. summary) or ""
end

---Return the note for a result that is sent shortened, or nil.
---@param cleared? boolean|integer A number: the percentage that is sent
---@return string?
function M.shortened(cleared)
  return type(cleared) == "number" and CUT:format(cleared) or cleared and CLEARED or nil
end

---Return the note on a file change that its file does not contain, as text and highlight group, or nil.
---@param change? table
---@return { [1]: string, [2]: string }?
function M.change_note(change)
  if change and change.reverted then
    return { REVERTED, "CodeCompanionUndone" }
  end
  return change and change.unsaved and { UNSAVED, "CodeCompanionToolSummary" } or nil
end

---Return the keys of a result that is sent shortened; they are shown at the right edge of its line while the cursor is
---on it (`draw/view_marks.lua`).
---@param cleared boolean|integer
---@return string
function M.cleared_keys(cleared)
  local show, restore = keys.keys("show_original", "n")[1], keys.keys("restore", "n")[1]
  local found = { show and show .. (type(cleared) == "number" and " whole" or " original") or nil }
  found[#found + 1] = restore and restore .. " restore" or nil
  return table.concat(found, " · ")
end

---Return the note of an item about its shortened form in the request, or nil if it is sent in full.
---@param item table
---@return string?
function M.note(item)
  return M.shortened(item.cleared) or item.lost and M.LOST or nil
end

---Return the line of a closed tool fold: mark, state, title, summary. In a narrow window the title is shortened first:
---the outcome of a call is more important than the end of a command.
---@param tool table
---@param width? integer Available cells
---@return { [1]: string, [2]: string }[]
function M.line(tool, width)
  local state = STATES[tool.status] or STATES.running
  local outcome = M.shortened(tool.cleared) or summary_of(tool)
  local title = vim.trim(blocks.one_line(tool.title))
  local note = M.change_note(tool.change)
  if width then
    local room = width - api.nvim_strwidth("▸ " .. state[1] .. (note and note[1] or ""))
    local for_keys = tool.cleared and api.nvim_strwidth(M.cleared_keys(tool.cleared)) + MIN_GAP or 0
    if note and width < NARROW and api.nvim_strwidth(title .. outcome) > room then
      outcome = "" -- the size of a change that is not in the file is less important than its file
    end
    room = room - for_keys >= api.nvim_strwidth(outcome) + MIN_TITLE and room - for_keys or room
    if HAS_REASON[tool.status] and not tool.cleared then
      local width_of_title = api.nvim_strwidth(title)
      local function is_too_long()
        return width_of_title + api.nvim_strwidth(outcome) > room
      end
      if width >= NARROW and is_too_long() then
        outcome = outcome:match("^(.-)%.%s") or outcome
      elseif is_too_long() then
        outcome = outcome:gsub(" · [%d.,k]+ lines?$", "")
      end
      if is_too_long() then
        outcome = outcome:gsub("^ · failed: ", " · ") -- the sign already shows it
        outcome = outcome:gsub("^( · rejected): (.*)", width < NARROW and "%1" or " · %2")
      end
      if is_too_long() then
        outcome = outcome:match("^(.-)%.%s") or outcome
      end
      if api.nvim_strwidth(outcome) > room - MIN_TITLE then -- the title keeps up to half of the line
        outcome = fit.cut_words(outcome, room - math.min(width_of_title, math.floor(room / 2)))
      end
    else
      outcome = fit.cut(outcome, math.max(room - MIN_TITLE, math.floor(room / 2)))
    end
    title = fit.call(title, room - api.nvim_strwidth(outcome))
  end
  return {
    { "▸ ", "CodeCompanionFoldMark" },
    state,
    { title, "CodeCompanionTool" },
    { outcome, tool.cleared and "CodeCompanionCleared" or "CodeCompanionToolSummary" },
    note,
  }
end

---Return the content of a call's fold: its output in a fence, or the lines it changed in a file.
---@param tool table
---@return string[] lines
---@return CodeCompanion.BlockMark[] marks Rows are relative to these lines
local function body_of(tool)
  if not tool.preview or tool.preview == "" then
    return {}, {}
  end
  local rows = tool.change and require("codecompanion.changes.change_rows").of_diff(tool.preview) or {}
  if #rows > 0 then
    local room = { width = MAX_LINE_BYTES, rows = MAX_BODY_LINES, wraps = false }
    local shown = require("codecompanion.changes.change_rows").layout(rows, room)
    return shown.lines, shown.marks
  end
  local fence, marks = blocks.fence(tool.preview), {}
  local lines = vim.list_extend({ fence }, bounded(tool.preview))
  lines[#lines + 1] = fence
  for row, line in ipairs(lines) do
    marks[row] = { row = row - 1, from = 0, to = #line, group = "CodeCompanionToolOutput" }
  end
  return lines, marks
end

---Return the block of a tool call: one line, with its output in a fold.
---@param tool table title, summary, status, preview, cleared, call_id, message_id, name, change
---@return CodeCompanion.Block
function M.block(tool)
  local body, body_marks = body_of(tool)
  local title = (#body > 0 and "▾ " or "▸ ") .. vim.trim(blocks.one_line(tool.title))
  local line = title .. summary_of(tool)
  local lines, marks =
    { line }, {
      { row = 0, from = 0, to = #"▸", group = "CodeCompanionFoldMark" },
      { row = 0, from = #"▸ ", to = #title, group = "CodeCompanionTool" },
      { row = 0, from = #title, to = #line, group = "CodeCompanionToolSummary" },
    }
  if #body > 0 then
    vim.list_extend(lines, body)
    for _, mark in ipairs(body_marks) do
      marks[#marks + 1] = vim.tbl_extend("force", mark, { row = mark.row + 1 })
    end
  end
  local state = { STATES[tool.status] or STATES.running }
  local eol = { { row = 0, col = #"▸ ", pos = "inline", chunks = state } }
  local shortened = M.shortened(tool.cleared)
  if shortened then
    eol[2] = { row = 0, col = #line, pos = "inline", chunks = { { shortened, "CodeCompanionCleared" } } }
  end
  local note = M.change_note(tool.change)
  if note then
    eol[#eol + 1] = { row = 0, col = #line, pos = "inline", chunks = { note } }
  end
  local block = { kind = "tool", lines = lines, marks = marks, eol = eol, item = tool }
  if #lines > 1 then
    block.folds = {
      {
        first = 0,
        last = #lines - 1,
        key = tool.message_id and ("tool:" .. tool.message_id) or nil,
        closed = options.display().fold_tools,
        text = function(width)
          return M.line(tool, width)
        end,
      },
    }
  end
  return block
end

return M
