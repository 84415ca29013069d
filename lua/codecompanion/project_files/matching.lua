---Matches typed text against many names. The names are one string, each between NULs, so a few plain searches cover a
---hundred thousand of them.

local M = {}

---Maximum number of positions checked for each kind of match: a single letter occurs in nearly every name.
local MAX_PLACES = 5000

---@param text string
---@param at integer Position inside a name
---@return integer first
---@return integer last
local function name_around(text, at)
  local first = at
  while first > 1 and text:byte(first - 1) ~= 0 do
    first = first - 1
  end
  local last = text:find("\0", at, true) or (#text + 1)
  return first, last - 1
end

---Return whether a path contains the parts in order.
---@param path string
---@param parts string[]
---@return boolean
local function has_parts(path, parts)
  local from = 1
  for _, part in ipairs(parts) do
    local _, last = path:find(part, from, true)
    if not last then
      return false
    end
    from = last + 1
  end
  return true
end

---Sort names by length, then alphabetically.
---@param names string[]
---@return string[]
local function sorted(names)
  table.sort(names, function(a, b)
    if #a ~= #b then
      return #a < #b
    end
    return a < b
  end)
  return names
end

---Visit the positions of `needle` until `take` returns true.
---@param lower string
---@param needle string
---@param take fun(first: integer, last: integer, at: integer): boolean?
local function each(lower, needle, take)
  local at = 0
  for _ = 1, MAX_PLACES do
    at = lower:find(needle, at + 1, true)
    if not at then
      return
    end
    local first, last = name_around(lower, lower:byte(at) == 0 and at + 1 or at)
    if first <= last and take(first, last, at) then
      return
    end
  end
end

---Return paths that continue `lead`, each up to its next `/`.
---@param text string
---@param lower string
---@param lead string In lower case
---@return string[]
local function going_on(text, lower, lead)
  local found, has = {}, {}
  each(lower, "\0" .. lead, function(first, last)
    local slash = lower:find("/", first + #lead, true)
    local name = text:sub(first, slash and slash <= last and slash or last)
    if not has[name] then
      has[name], found[#found + 1] = true, name
    end
  end)
  table.sort(found)
  return found
end

---Return names that match `lead` regardless of case, best first: paths that continue it (folders end with `/`), files
---whose own name begins with it, names that contain it, paths that contain it. If `lead` contains slashes, the parts
---before the last slash must occur in the folders, in order.
---@param text string Names, each between NULs
---@param lower string `text` in lower case
---@param lead string
---@param max integer
---@return string[]
function M.find(text, lower, lead, max)
  lead = lead:lower()
  local found = going_on(text, lower, lead)
  local parts = vim.split(lead, "/", { plain = true, trimempty = true })
  if lead == "" or vim.endswith(lead, "/") or #parts == 0 then
    return vim.list_slice(found, 1, max)
  end
  local own = table.remove(parts)
  local has = {}
  for _, name in ipairs(found) do
    has[name] = true
  end
  ---@param needle string
  ---@param is_own boolean Whether `needle` must occur in the last path component
  local function take(needle, is_own)
    local names = {}
    each(lower, needle, function(first, last, at)
      local name = text:sub(first, last)
      local start = at + (needle == own and 0 or 1)
      local slash = is_own and lower:find("/", start, true)
      local is_in_folder = slash and slash <= last
      if not has[name] and not is_in_folder and has_parts(lower:sub(first, start - 1), parts) then
        has[name], names[#names + 1] = true, name
      end
      return #found + #names >= max
    end)
    vim.list_extend(found, sorted(names))
  end
  take("/" .. own, true)
  take(own, true)
  take(own, false)
  return vim.list_slice(found, 1, max)
end

---Match a few names, without folders, and keep their order.
---@param names string[]
---@param lead string
---@param max integer
---@return string[]
function M.among(names, lead, max)
  local text = "\0" .. table.concat(names, "\0") .. "\0"
  local has = {}
  for _, name in ipairs(M.find(text, text:lower(), lead, #names + max)) do
    has[name] = true
  end
  return vim.tbl_filter(function(name)
    return lead == "" or has[name] or vim.startswith(name:lower(), lead:lower())
  end, names)
end

return M
