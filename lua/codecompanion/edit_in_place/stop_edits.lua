---Stops edits in place for `:CodeCompanion cancel`, and returns their descriptions.

local api = vim.api
local asking = require("codecompanion.edit_in_place.ask_for_edit")
local region = require("codecompanion.changes.region")
local of_buffer = require("codecompanion.changes.proposals_of_buffer")

local M = {}

---Return the edits in a buffer whose replies are still streaming, from top to bottom.
---@param bufnr integer
---@return CodeCompanion.StandingEdit[]
local function running(bufnr)
  return vim.tbl_filter(function(edit)
    return edit.is_asking
  end, of_buffer.live(bufnr))
end

---@param edit CodeCompanion.StandingEdit
---@return string
local function name_of(edit)
  local first, last = region.rows(edit.region)
  if not first then
    return "an edit"
  end
  return last - first < 2 and ("the edit of line %d"):format(first + 1)
    or ("the edit of lines %d-%d"):format(first + 1, last)
end

---@param list CodeCompanion.StandingEdit[]
---@return string[] stopped
local function stop(list)
  local names = vim.tbl_map(name_of, list)
  for _, edit in ipairs(list) do
    asking.stop_silently(edit)
  end
  return #names > 2 and { ("%d edits"):format(#names) } or names
end

---Stop the edit under the cursor.
---@return string[] stopped
function M.under_cursor()
  local bufnr, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1
  local here = of_buffer.meeting(bufnr, row, row + 1)
  return here and here.is_asking and stop({ here }) or {}
end

---Stop all edits of the current buffer.
---@return string[] stopped
function M.of_buffer()
  return stop(running(api.nvim_get_current_buf()))
end

---Stop all edits of other buffers.
---@return string[] stopped
function M.elsewhere()
  local list, files = {}, {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local shown = bufnr ~= api.nvim_get_current_buf() and running(bufnr) or {}
    vim.list_extend(list, shown)
    files[#files + 1] = #shown > 0 and vim.fn.fnamemodify(api.nvim_buf_get_name(bufnr), ":t") or nil
  end
  local stopped = stop(list)
  if #files == 1 and files[1] ~= "" then
    stopped[#stopped] = stopped[#stopped] .. " in " .. files[1]
  elseif #files > 1 then
    stopped = { ("%d edits in %d buffers"):format(#list, #files) }
  end
  return stopped
end

return M
