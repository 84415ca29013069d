---Tracks the lines of a buffer that a proposal covers while the user keeps typing.

local api = vim.api

local M = {}

M.namespace = api.nvim_create_namespace("codecompanion.changes.region")

---@class CodeCompanion.Region
---@field bufnr integer
---@field top integer Extmark on the first line
---@field bottom integer Extmark on the line after the last one

---@param region { bufnr: integer, top?: integer, bottom?: integer }
---@param first integer 0-based row
---@param last integer 0-based row after the last line
---@return CodeCompanion.Region
function M.set(region, first, last)
  local function mark(id, row, right)
    return api.nvim_buf_set_extmark(region.bufnr, M.namespace, row, 0, {
      id = id,
      right_gravity = right,
      strict = false,
    })
  end
  region.top, region.bottom = mark(region.top, first, false), mark(region.bottom, last, true)
  return region --[[@as CodeCompanion.Region]]
end

---Return the current rows of the region, or nil if the buffer or its marks are gone.
---@param region CodeCompanion.Region
---@return integer? first
---@return integer? last
function M.rows(region)
  if not api.nvim_buf_is_loaded(region.bufnr) then
    return nil
  end
  local top = api.nvim_buf_get_extmark_by_id(region.bufnr, M.namespace, region.top, {})
  local bottom = api.nvim_buf_get_extmark_by_id(region.bufnr, M.namespace, region.bottom, {})
  if not top[1] or not bottom[1] then
    return nil
  end
  return top[1], math.min(math.max(bottom[1], top[1]), api.nvim_buf_line_count(region.bufnr))
end

---@param region CodeCompanion.Region
---@return string[]
function M.lines(region)
  local first, last = M.rows(region)
  return first and api.nvim_buf_get_lines(region.bufnr, first, last --[[@as integer]], false) or {}
end

---@param region CodeCompanion.Region
function M.clear(region)
  if api.nvim_buf_is_loaded(region.bufnr) then
    api.nvim_buf_del_extmark(region.bufnr, M.namespace, region.top)
    api.nvim_buf_del_extmark(region.bufnr, M.namespace, region.bottom)
  end
end

return M
