---Finds the open buffer that a name refers to, for both `/buffer` and `#{buffer:name}`.

local api = vim.api

local M = {}

local MAX_NAMED = 5

---Return the display name of a buffer: its file, or its number if it has none.
---@param bufnr integer
---@return string
function M.name(bufnr)
  local path = api.nvim_buf_get_name(bufnr)
  return vim.bo[bufnr].buftype == "" and path ~= "" and vim.fn.fnamemodify(path, ":.") or ("buffer %d"):format(bufnr)
end

---Return the buffers that match a name: by number or path, else by the end of the path, else by a part of it.
---@param name string
---@param buffers integer[]
---@return integer[]
local function meant(name, buffers)
  local written = vim.fs.normalize(name, { expand_env = false })
  local ways = {
    function(bufnr)
      local path = api.nvim_buf_get_name(bufnr)
      return tostring(bufnr) == name or M.name(bufnr) == name or path ~= "" and path == written
    end,
    function(bufnr)
      return vim.endswith("/" .. M.name(bufnr), "/" .. name)
    end,
    function(bufnr)
      return M.name(bufnr):find(name, 1, true) ~= nil
    end,
  }
  for _, is_meant in ipairs(ways) do
    local found = vim.tbl_filter(is_meant, buffers)
    if #found > 0 then
      return found
    end
  end
  return {}
end

---Return the one buffer that a name refers to.
---@param name string
---@param buffers integer[] Candidates
---@return integer? bufnr
---@return string? problem Clause stating that no buffer matches or that several do
function M.find(name, buffers)
  local found = meant(name, buffers)
  if #found == 1 then
    return found[1]
  elseif #found == 0 then
    return nil, ("no open buffer is called %s"):format(name)
  end
  local names = vim.tbl_map(M.name, vim.list_slice(found, 1, MAX_NAMED))
  local more = #found > MAX_NAMED and (" and %d more"):format(#found - MAX_NAMED) or ""
  return nil, ("%s could be %s%s"):format(name, table.concat(names, ", "), more)
end

---Return the buffer names that contain `lead`, for completion.
---@param lead string
---@param buffers integer[]
---@return string[]
function M.containing(lead, buffers)
  return vim.tbl_filter(function(name)
    return name:find(lead, 1, true) ~= nil
  end, vim.tbl_map(M.name, buffers))
end

return M
