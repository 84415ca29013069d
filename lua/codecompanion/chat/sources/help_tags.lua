---Reads entries of Neovim's help by tag, as a source for attachments.

local M = {}

local MAX_LINES = 300
local MAX_COMPLETED = 300

---@param line string
---@return boolean
local function is_rule(line)
  return line:find("^===+%s*$") ~= nil or line:find("^%-%-%-+%s*$") ~= nil
end

---Return whether a new entry begins on a line: such a line ends with a tag.
---@param line string
---@return boolean
local function has_tag(line)
  return line:find("%*[^%s*|]+%*%s*$") ~= nil
end

---Return the file that contains a tag.
---@param tag string
---@return string? path
local function file_of(tag)
  local wanted = tag .. "\t"
  for _, tags in ipairs(vim.api.nvim_get_runtime_file("doc/tags*", true)) do
    local file = io.open(tags, "r")
    if file then
      for line in file:lines() do
        if vim.startswith(line, wanted) then
          file:close()
          return vim.fs.joinpath(vim.fs.dirname(tags), line:match("^[^\t]+\t([^\t]+)"))
        end
      end
      file:close()
    end
  end
end

---Return the tag that `:help` would open, and its file; an option's name may be written without quotes, as in `:help`.
---@param tag string
---@return string tag
---@return string? path
local function as_help_finds(tag)
  for _, way in ipairs({ "%s", "'%s'", ":%s", "%s()" }) do
    local path = file_of(way:format(tag))
    if path then
      return way:format(tag), path
    end
  end
  local near = vim.fn.getcompletion(tag, "help")
  if #near == 1 then
    return near[1], file_of(near[1])
  end
  return tag, nil
end

---Return the entry at a row: up to the next entry or rule that follows some text.
---@param lines string[]
---@param row integer
---@return string[]
local function entry(lines, row)
  local found, said = { lines[row] }, false
  for at = row + 1, #lines do
    local line = lines[at]
    if said and (is_rule(line) or has_tag(line)) then
      break
    elseif #found > MAX_LINES then
      found[#found + 1] = ("… the entry continues at line %d of its file"):format(at)
      break
    end
    said = said or (line:find("%S") ~= nil and not has_tag(line))
    found[#found + 1] = line
  end
  while #found > 0 and not found[#found]:find("%S") do
    found[#found] = nil
  end
  return found
end

---Return the text at a tag.
---@param tag string
---@return string? text
---@return string? why Why there is no text
function M.text(tag)
  local path
  tag, path = as_help_finds(tag)
  if not path then
    local near = vim.fn.getcompletion(tag, "help")[1]
    return nil, ("No help for %s%s"):format(tag, near and ("; did you mean %s?"):format(near) or ".")
  end
  local ok, lines = pcall(vim.fn.readfile, path)
  local mark = "*" .. tag .. "*"
  for row, line in ipairs(ok and lines or {}) do
    if line:find(mark, 1, true) then
      return table.concat(entry(lines, row), "\n") .. "\n"
    end
  end
  return nil, ("The help tags are out of date: %s has no %s. Run :helptags ALL."):format(path, tag)
end

---Return tags that begin with `lead`, as `:help` completes them.
---@param lead string
---@return string[]
function M.complete(lead)
  local found = lead ~= "" and vim.fn.getcompletion(lead, "help") or {}
  return vim.list_slice(found, 1, MAX_COMPLETED)
end

return M
