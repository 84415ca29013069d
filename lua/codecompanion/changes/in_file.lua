---Proposes changes to a whole file in the file's buffer: a reverted change that overlaps later ones, or a reopened
---rejected change.

local api = vim.api
local buffers = require("codecompanion.files.loaded_files")
local hunks = require("codecompanion.changes.hunks")
local present = require("codecompanion.changes.present")
local proposals = require("codecompanion.changes.proposal")
local say = require("codecompanion.say")
local show = require("codecompanion.screen.open_file")
local of_buffer = require("codecompanion.changes.proposals_of_buffer")

local M = {}

---Open the file and propose the change from one version to another. Other changes in the file are kept; hunks that
---overlap them are marked.
---@param path string
---@param from string Text that the change was made for
---@param to string
---@return CodeCompanion.StandingEdit? edit nil if the file cannot be opened
function M.propose(path, from, to)
  show.file(path)
  local bufnr = api.nvim_get_current_buf()
  if buffers.path_of(bufnr) ~= buffers.real_path(path) then
    return nil -- the reason was already reported
  end
  local count = api.nvim_buf_line_count(bufnr)
  local is_empty = count == 1 and api.nvim_buf_get_lines(bufnr, 0, 1, false)[1] == ""
  local base, theirs = hunks.text(from).lines, hunks.text(to).lines
  base = #base == 0 and is_empty and { "" } or base
  local actions = require("codecompanion.changes.decision_actions")
  local edit = of_buffer.propose(bufnr, 0, count, base, theirs, actions)
  if not of_buffer.is_alive(edit) then
    say.hint("Nothing to decide: the file already has these lines")
    return nil
  end
  api.nvim_win_set_cursor(0, { math.min(proposals.rows(edit.proposal)[1] + 1, count), 0 })
  vim.cmd.normal({ "zvzz", bang = true })
  present.reveal(edit)
  return edit
end

return M
