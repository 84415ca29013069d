---Keeps the text of a proposal in its own buffer, where the user may edit it, and computes its hunks. Skipping a hunk
---is an edit like any other.

local api = vim.api
local hunks = require("codecompanion.changes.hunks")
local undo_tree = require("codecompanion.changes.undo_tree")

---@class CodeCompanion.ProposedText
---@field before CodeCompanion.Text
---@field after CodeCompanion.Text As proposed
---@field is_editable boolean
---@field bufnr integer
---@field hunks CodeCompanion.Hunk[] Hunks between `before` and the current text
---@field start CodeCompanion.Text Initial text of its buffer: the proposal, or the edited text from before it was
---unloaded
---@field ends table<integer, CodeCompanion.Text> The text after a skip, by undo state: its final newline, which lines
---do not record
---@field kept? CodeCompanion.Text The text when its buffer was unloaded
local Proposed = {}
Proposed.__index = Proposed

local M = {}

local MIN_UNDO = 1000

---Return whether the displayed text is the text before the change, because a deleted file has no new text.
---@return boolean
function Proposed:shows_removed()
  return #self.after.lines == 0 and not self.is_editable
end

---@return CodeCompanion.Text
function Proposed:shown()
  return self:shows_removed() and self.before or self.after
end

---Return the current text. The lines of a buffer do not record whether the text ends with a newline or whether one
---empty line is text: the proposal, or the newest skip, decides that.
---@return CodeCompanion.Text
function Proposed:text()
  local newest, state = self.start, 0
  if not self.is_editable then
    return self.after
  elseif not api.nvim_buf_is_loaded(self.bufnr) then
    return self.kept or self.start
  end
  local changes = next(self.ends) ~= nil and undo_tree.changes(self.bufnr) or {}
  for at, text in pairs(self.ends) do
    if at > state and changes[at] == "made" then
      newest, state = text, at
    end
  end
  local lines = api.nvim_buf_get_lines(self.bufnr, 0, -1, false)
  if #lines == 1 and lines[1] == "" then
    lines = undo_tree.state(self.bufnr) == state and newest.lines or {}
  end
  return { lines = lines, eol = newest.eol ~= false }
end

---Return the proposal as edited by the user, or nil if it is unchanged.
---@return string? text
function Proposed:edited()
  local text = hunks.joined(self:text())
  return text ~= hunks.joined(self.after) and text or nil
end

---Recompute the hunks of the current text.
function Proposed:refresh()
  self.hunks = hunks.between(self.before, self:text())
end

---Return the rows of a hunk in the displayed text; for a hunk without lines there, the line above it.
---@param index integer
---@return integer first 0-based
---@return integer count Number of its lines
function Proposed:place(index)
  local offset = 0
  if not self:shows_removed() then
    for at = 1, index - 1 do
      offset = offset + #self.hunks[at].lines - self.hunks[at].count
    end
  end
  local hunk = self.hunks[index]
  return hunk.first + offset, self:shows_removed() and hunk.count or #hunk.lines
end

---Return the hunk at a row, or those within a range of rows.
---@param from integer 0-based
---@param to integer
---@return integer[] indices
function Proposed:on_rows(from, to)
  local found = {}
  for index in ipairs(self.hunks) do
    local first, count = self:place(index)
    local last = first + count - 1
    if count == 0 then
      first, last = math.max(0, first - 1), first -- its removed lines are drawn between the two
    end
    found[#found + 1] = first <= to and from <= last and index or nil
  end
  return found
end

---@param index integer
---@return integer row 0-based, in the buffer
function Proposed:row_of(index)
  local first, count = self:place(index)
  local row = count == 0 and math.max(0, first - 1) or first
  return math.min(row, api.nvim_buf_line_count(self.bufnr) - 1)
end

---Revert the lines of hunks, as one undo step.
---@param indices integer[]
function Proposed:skip(indices)
  local before = self.before
  undo_tree.close_block(self.bufnr)
  undo_tree.forget()
  local was_empty, left = #self:text().lines == 0, {}
  for index, hunk in ipairs(self.hunks) do
    left[#left + 1] = not vim.list_contains(indices, index) and hunk or nil
  end
  for at = #indices, 1, -1 do
    local hunk = self.hunks[indices[at]]
    local first, count = self:place(indices[at])
    local lines = vim.list_slice(before.lines, hunk.first + 1, hunk.first + hunk.count)
    api.nvim_buf_set_lines(self.bufnr, first, first + count, false, lines)
  end
  if was_empty then -- text put into an empty buffer goes above its one empty line
    api.nvim_buf_set_lines(self.bufnr, -2, -1, false, {})
  end
  undo_tree.close_block(self.bufnr)
  self.ends[undo_tree.state(self.bufnr)] = hunks.apply(before, left)
  self:refresh()
end

---Fill the buffer without an undo step.
---@param text CodeCompanion.Text
function Proposed:_fill(text)
  local bo = vim.bo[self.bufnr]
  self.start, self.ends = text, {}
  bo.modifiable, bo.undolevels = true, -1
  api.nvim_buf_set_lines(self.bufnr, 0, -1, false, text.lines)
  -- undo must be on: the final newline is looked up by undo state
  bo.undolevels = math.max(MIN_UNDO, api.nvim_get_option_value("undolevels", { scope = "global" }))
  bo.modifiable, bo.modified = self.is_editable, false
end

---Restore the text as proposed and discard the edits (`:e!`).
function Proposed:as_it_came()
  self.kept = nil
  self:_fill(self:shown())
end

---Save the edits of a buffer that is about to be unloaded.
function Proposed:keep()
  self.kept = self:text()
end

---@param before CodeCompanion.Text
---@param after CodeCompanion.Text
---@param is_editable boolean
---@param path string "" for text without a file
---@param title string Kind of change, as shown above the text: `Edit`
---@param kept? CodeCompanion.Text The user's earlier edits
---@return CodeCompanion.ProposedText
function M.new(before, after, is_editable, path, title, kept)
  local bufnr, file = api.nvim_create_buf(false, true), vim.fn.fnamemodify(path, ":t")
  local self = { before = before, after = after, is_editable = is_editable, bufnr = bufnr, hunks = {} }
  setmetatable(self, Proposed)
  local name, bo = vim.trim(("%s %s"):format(title, file)), vim.bo[bufnr]
  require("codecompanion.screen.open_file").only_files(bufnr)
  if not pcall(api.nvim_buf_set_name, bufnr, name) then -- another proposal for the file is open
    pcall(api.nvim_buf_set_name, bufnr, ("%s#%d"):format(name, bufnr))
  end
  bo.swapfile, bo.bufhidden = false, is_editable and "hide" or "wipe"
  bo.buftype = is_editable and "acwrite" or "nofile"
  self:_fill(kept or self:shown())
  return self
end

return M
