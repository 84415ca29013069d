---Records the code that was most recently edited or visited, which the host adds to the model's prompt.

local api = vim.api

local M = {}

local MAX_PLACES = 8
local MARGIN = 12 -- lines above and below the cursor

---@type { path: string, start: integer, end: integer }[] Newest first; lines are 1-based and inclusive
local places = {}

---Record the cursor's position.
---@param bufnr integer The current buffer
function M.visit(bufnr)
  local path = api.nvim_buf_get_name(bufnr)
  if vim.bo[bufnr].buftype ~= "" or path == "" then
    return
  end
  local row = api.nvim_win_get_cursor(0)[1]
  local from, to = math.max(row - MARGIN, 1), math.min(row + MARGIN, api.nvim_buf_line_count(bufnr))
  local kept = { { path = path, start = from, ["end"] = to } }
  for _, place in ipairs(places) do
    local overlaps = place.path == path and place.start <= to and from <= place["end"]
    if not overlaps and #kept < MAX_PLACES then
      kept[#kept + 1] = place
    end
  end
  places = kept
end

---@return { path: string, start: integer, end: integer }[]
function M.list()
  return places
end

return M
