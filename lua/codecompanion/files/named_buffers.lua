---Which open buffer a name means, the same for `/buffer` and `#{buffer:name}`.

local api = vim.api

local M = {}

local MAX_NAMED = 5

---The file of a buffer as it is shown; one without a file is called by its number.
---@param bufnr integer
---@return string
function M.name(bufnr)
  local path = api.nvim_buf_get_name(bufnr)
  return vim.bo[bufnr].buftype == "" and path ~= "" and vim.fn.fnamemodify(path, ":.") or ("buffer %d"):format(bufnr)
end

---Those of the buffers that a name means: by number or path, else by the end of the path, else by a part of it.
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

---The one buffer that a name means.
---@param name string
---@param buffers integer[] Those there are
---@return integer? bufnr
---@return string? problem Half a sentence: there is none, or there are several
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

---Names of the buffers that contain a text, as completion offers them.
---@param lead string
---@param buffers integer[]
---@return string[]
function M.containing(lead, buffers)
  return vim.tbl_filter(function(name)
    return name:find(lead, 1, true) ~= nil
  end, vim.tbl_map(M.name, buffers))
end

return M
