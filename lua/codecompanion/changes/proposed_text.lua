---The text of a proposal in a buffer of its own, where the user may edit it: its hunks, and what it is now. A skipped
---hunk is an edit like any other.

local api = vim.api
local hunks = require("codecompanion.changes.hunks")
local undo_tree = require("codecompanion.changes.undo_tree")

---@class CodeCompanion.ProposedText
---@field before CodeCompanion.Text
---@field after CodeCompanion.Text As it was proposed
---@field is_editable boolean
---@field bufnr integer
---@field hunks CodeCompanion.Hunk[] Between `before` and the text as it is now
---@field start CodeCompanion.Text What its buffer began with: the proposal, or what was edited when it was unloaded
---@field ends table<integer, CodeCompanion.Text> The text after a skip, by its undo state: what lines do not say
---@field kept? CodeCompanion.Text What it was when its buffer was unloaded
local Proposed = {}
Proposed.__index = Proposed

local M = {}

local MIN_UNDO = 1000

---Whether the text that is shown is the one before the change: nothing is left of a deleted file.
---@return boolean
function Proposed:shows_removed()
  return #self.after.lines == 0 and not self.is_editable
end

---@return CodeCompanion.Text
function Proposed:shown()
  return self:shows_removed() and self.before or self.after
end

---The text as it is now. Whether it ends with a newline, and whether one empty line is a text, the lines of a buffer do
---not say: it is as it came, or as the newest skip has left it.
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

---The proposal as the user left it, nil when it is as it came.
---@return string? text
function Proposed:edited()
  local text = hunks.joined(self:text())
  return text ~= hunks.joined(self.after) and text or nil
end

---Work out the hunks of the text as it is now.
function Proposed:refresh()
  self.hunks = hunks.between(self.before, self:text())
end

---The rows of a hunk in the text that is shown; a hunk that leaves no line there is at the line above.
---@param index integer
---@return integer first 0-based
---@return integer count Lines of it there are
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

---The hunk at a row, or those on the rows up to another one.
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

---Put the lines of hunks back as they were, as one step of undo.
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
  if was_empty then -- what is put into an empty buffer comes above its one empty line
    api.nvim_buf_set_lines(self.bufnr, -2, -1, false, {})
  end
  undo_tree.close_block(self.bufnr)
  self.ends[undo_tree.state(self.bufnr)] = hunks.apply(before, left)
  self:refresh()
end

---Fill the buffer, without a step of undo.
---@param text CodeCompanion.Text
function Proposed:_fill(text)
  local bo = vim.bo[self.bufnr]
  self.start, self.ends = text, {}
  bo.modifiable, bo.undolevels = true, -1
  api.nvim_buf_set_lines(self.bufnr, 0, -1, false, text.lines)
  -- what lines do not say is found by the state of undo, so there is undo here in any case
  bo.undolevels = math.max(MIN_UNDO, api.nvim_get_option_value("undolevels", { scope = "global" }))
  bo.modifiable, bo.modified = self.is_editable, false
end

---Take the text as it was proposed, without any edit: `:e!`.
function Proposed:as_it_came()
  self.kept = nil
  self:_fill(self:shown())
end

---The buffer is about to be unloaded: what was edited stays.
function Proposed:keep()
  self.kept = self:text()
end

---@param before CodeCompanion.Text
---@param after CodeCompanion.Text
---@param is_editable boolean
---@param path string "" for a text without a file
---@param kept? CodeCompanion.Text What the user had made of it before
---@return CodeCompanion.ProposedText
function M.new(before, after, is_editable, path, kept)
  local bufnr, file = api.nvim_create_buf(false, true), vim.fn.fnamemodify(path, ":t")
  local self = { before = before, after = after, is_editable = is_editable, bufnr = bufnr, hunks = {} }
  setmetatable(self, Proposed)
  local name, bo = ("[proposal] %s"):format(file ~= "" and file or "[No Name]"), vim.bo[bufnr]
  require("codecompanion.screen.open_file").only_files(bufnr)
  if not pcall(api.nvim_buf_set_name, bufnr, name) then -- another proposal for it is open
    pcall(api.nvim_buf_set_name, bufnr, ("%s#%d"):format(name, bufnr))
  end
  bo.swapfile, bo.bufhidden = false, is_editable and "hide" or "wipe"
  bo.buftype = is_editable and "acwrite" or "nofile"
  self:_fill(kept or self:shown())
  return self
end

return M
