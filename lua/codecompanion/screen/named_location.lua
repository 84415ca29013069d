---Finds the file and line named at the cursor in a line of text: `path:412`, `path:412:7`, `path:412-420`, `path#L412`,
---`path(412)`, even in backticks, quotes and brackets.

local M = {}

local MAX_NAMES = 100 -- each requires a lookup on disk

---@class CodeCompanion.NamedPlace
---@field path string Absolute
---@field line? integer 1-based
---@field column? integer 1-based, in bytes

---Suffixes of a path, the most specific first.
local SUFFIXES = {
  "^(.-):(%d+):(%d+)",
  "^(.-):L?(%d+)",
  "^(.-)#L(%d+)C(%d+)",
  "^(.-)#L(%d+)",
  "^(.-)%((%d+), ?(%d+)%)",
  "^(.-)%((%d+)%)",
}

---@param name string
---@param folders string[]
---@return string? path Absolute
local function find(name, folders)
  for _, wanted in ipairs({ name, (name:gsub("^[ab]/", "")) }) do -- diffs prefix the two sides
    for _, folder in ipairs(wanted ~= "" and folders or {}) do
      local path = vim.fs.normalize(wanted, { expand_env = false })
      path = vim.startswith(path, "/") and path or vim.fs.joinpath(folder, path)
      if vim.fn.filereadable(path) == 1 then
        return path
      end
    end
  end
end

---Return the location named by a string, if its file exists.
---@param text string
---@param folders string[] Base folders of a relative path
---@return CodeCompanion.NamedPlace?
function M.read(text, folders)
  local whole = find(text, folders)
  if whole then
    return { path = whole }
  end
  for _, suffix in ipairs(SUFFIXES) do
    local name, line, column = text:match(suffix)
    local path = name and find(name, folders)
    if path then
      return { path = path, line = tonumber(line), column = tonumber(column) }
    end
  end
  local bare = text:gsub("[%.,;:!%?%)%]}>%*_]+$", "")
  return bare ~= text and M.read(bare, folders) or nil
end

---Return the candidates in a line that end after the cursor, those around it first: text in backticks or quotes, then
---words.
---@param line string
---@param column integer 0-based, in bytes
---@return string[]
local function names(line, column)
  local at, following = {}, {}
  for _, pattern in ipairs({ "()`([^`]+)`()", '()"([^"]+)"()', "()'([^']+)'()", "()([^%s`\"'<>|]+)()" }) do
    for first, text, last in line:gmatch(pattern) do
      if last - 1 > column then
        table.insert(first - 1 <= column and at or following, { text = text, first = first })
      end
    end
  end
  table.sort(following, function(a, b)
    return a.first < b.first
  end)
  return vim.list_slice(
    vim.tbl_map(function(one)
      return one.text
    end, vim.list_extend(at, following)),
    1,
    MAX_NAMES
  )
end

---Return the first file named at or after the cursor.
---@param line string
---@param column integer 0-based, in bytes
---@param folders string[] Base folders of a relative path
---@return CodeCompanion.NamedPlace?
function M.at(line, column, folders)
  for _, name in ipairs(names(line, column)) do
    local found = M.read(name, folders) or M.read((name:gsub("^[%(%[{<%*_]+", "")), folders)
    if found then
      return found
    end
  end
end

return M
