---Handles literal paths: Neovim's own expansion runs a shell for backticks, so text from a person, a model or a folder
---never goes through `glob()`, `expand()` or file completion.

local uv = vim.uv or vim.loop

local M = {}

---Limits of one pattern and of one completion.
local MAX_LOOKED_AT, MAX_DEPTH = 20000, 12

---Return the absolute path of a typed path; `~` is the home folder, no other character is special.
---@param path string
---@return string
function M.absolute(path)
  path = vim.fs.normalize(path, { expand_env = false })
  return path:sub(1, 1) == "/" and path or vim.fs.normalize(uv.cwd() .. "/" .. path, { expand_env = false })
end

---@param segment string A path component with `*`, `?` or `[…]`
---@return string lua_pattern
local function pattern_of(segment)
  local parts, at = { "^" }, 1
  while at <= #segment do
    local char = segment:sub(at, at)
    local set = char == "[" and segment:match("^%[[!^]?%]?[^%]]*%]", at)
    if char == "*" then
      parts[#parts + 1] = ".*"
    elseif char == "?" then
      parts[#parts + 1] = "[^\128-\191][\128-\191]*"
    elseif set then
      local is_not, chars = set:match("^%[([!^]?)(.*)%]$")
      parts[#parts + 1] = "[" .. (is_not ~= "" and "^" or "") .. chars:gsub("[%%%]%[^]", "%%%0") .. "]"
      at = at + #set - 1
    else
      parts[#parts + 1] = vim.pesc(char)
    end
    at = at + 1
  end
  return table.concat(parts) .. "$"
end

---@param name string
---@param segment string The pattern component
---@return boolean
local function is_shown(name, segment)
  return name:sub(1, 1) ~= "." or segment:sub(1, 1) == "."
end

---Return the paths that a pattern such as `src/*.lua` or `src/**/*.lua` matches, sorted. A leading dot must be matched
---explicitly.
---@param pattern string
---@return string[]
function M.matching(pattern)
  local found, left = {}, MAX_LOOKED_AT
  local function visit(folder, parts, depth)
    local part, rest = parts[1], vim.list_slice(parts, 2)
    if not part then
      found[#found + 1] = folder
    elseif not part:find("[*?%[]") then
      local path = folder .. (folder ~= "" and not vim.endswith(folder, "/") and "/" or "") .. part
      if #rest > 0 or uv.fs_stat(M.absolute(path)) then
        visit(path, rest, depth)
      end
    else
      if part == "**" then
        visit(folder, rest, depth)
      end
      local wanted = part ~= "**" and pattern_of(part) or ".*"
      for name, kind in vim.fs.dir(M.absolute(folder == "" and "." or folder)) do
        left = left - 1
        if left < 0 or depth > MAX_DEPTH then
          return
        end
        if is_shown(name, part) and name:find(wanted) and (part ~= "**" or kind == "directory") then
          local path = folder .. (folder ~= "" and not vim.endswith(folder, "/") and "/" or "") .. name
          visit(path, part == "**" and parts or rest, depth + 1)
        end
      end
    end
  end
  local parts = vim.split(pattern, "/", { plain = true, trimempty = true })
  visit(pattern:sub(1, 1) == "/" and "/" or "", parts, 0)
  table.sort(found)
  return found
end

---Return files and folders (ending in `/`) whose path begins with the typed text, in the form typed.
---@param lead string
---@param folder string Base of a relative path
---@return string[]
function M.beginning_with(lead, folder)
  local above, begun = lead:match("^(.*/)([^/]*)$")
  above, begun = above or "", begun or lead
  local found, base = {}, above:find("^[~/]") and M.absolute(above) or folder .. "/" .. above
  for name, kind in vim.fs.dir(base) do
    if #found >= MAX_LOOKED_AT then
      break
    end
    if vim.startswith(name, begun) and is_shown(name, begun) then
      if kind == "link" then
        kind = (uv.fs_stat(base .. "/" .. name) or {}).type
      end
      found[#found + 1] = above .. name .. (kind == "directory" and "/" or "")
    end
  end
  table.sort(found)
  return found
end

---Open a file in the current window by its literal name.
---@param path string
---@param command? "edit"|"split"|"tabedit"
function M.open(path, command)
  vim.api.nvim_cmd({ cmd = command or "edit", args = { M.absolute(path) }, magic = { file = false, bar = false } }, {})
end

---Return the buffer with exactly this name, or -1.
---@param path string
---@return integer
function M.buffer_of(path)
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(bufnr) == path then
      return bufnr
    end
  end
  return -1
end

return M
