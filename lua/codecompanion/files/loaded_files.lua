---Describes buffers for the host's tools: which files are loaded, and their text with Unix line endings.

local api = vim.api
local uv = vim.uv or vim.loop

local M = {}

---Maximum size of a buffer sent to the host; its tools do not read larger files (`text_files.MAX_READ_BYTES`).
local MAX_BYTES = 20000000

local REPLACEMENT = "\239\191\189"

---Maximum length of a chain of links, as in the operating system.
local MAX_LINKS = 40

---Return the real path of a file, even if it does not exist yet or is a dangling link.
---@param path string
---@param links? integer Links followed so far
---@return string
function M.real_path(path, links)
  local real = uv.fs_realpath(path)
  if real then
    return real
  end
  local folder, name = vim.fs.dirname(path), vim.fs.basename(path)
  if folder == path or name == "" then
    return path
  end
  folder = M.real_path(folder, links)
  local below = folder == "/" and "/" or folder .. "/"
  local target = (links or 0) < MAX_LINKS and uv.fs_readlink(below .. name)
  if target then
    return M.real_path(target:sub(1, 1) == "/" and target or below .. target, (links or 0) + 1)
  end
  return below .. name
end

---Return whether a buffer contains a file's text.
---@param bufnr integer
---@return boolean
local function is_open_file(bufnr)
  return api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == "" and api.nvim_buf_get_name(bufnr) ~= ""
end

---Return the real path of a buffer's file, or nil.
---@param bufnr integer
---@return string?
function M.path_of(bufnr)
  if is_open_file(bufnr) then
    local name = api.nvim_buf_get_name(bufnr)
    return not name:find("^%a[%w+.-]+://") and M.real_path(name) or nil
  end
end

---Return all loaded files.
---@return { bufnr: integer, path: string }[]
function M.open_files()
  local found = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local path = M.path_of(bufnr)
    if path then
      found[#found + 1] = { bufnr = bufnr, path = path }
    end
  end
  return found
end

local lpeg = vim.lpeg
local tail = lpeg.R("\128\191")

---Matches a UTF-8 character (RFC 3629); all other bytes are replaced.
local char = lpeg.R("\0\127")
  + lpeg.R("\194\223") * tail
  + lpeg.P("\224") * lpeg.R("\160\191") * tail
  + lpeg.P("\237") * lpeg.R("\128\159") * tail
  + (lpeg.R("\225\236") + lpeg.R("\238\239")) * tail * tail
  + lpeg.P("\240") * lpeg.R("\144\191") * tail * tail
  + lpeg.R("\241\243") * tail * tail * tail
  + lpeg.P("\244") * lpeg.R("\128\143") * tail * tail
local is_utf8 = char ^ 0 * -1
local mended = lpeg.Cs((char + lpeg.P(1) / REPLACEMENT) ^ 0)

---Return a line encoded for the host: NUL restored, invalid UTF-8 bytes as U+FFFD.
---@param line string
---@return string
function M.shown(line)
  if line:find("\n", 1, true) then
    line = line:gsub("\n", "\0")
  end
  return line:find("[\128-\255]") and mended:match(line) or line
end

---Return whether the text ends with a newline when written.
---@param bufnr integer
---@return boolean
function M.has_final_newline(bufnr)
  local bo = vim.bo[bufnr]
  return bo.endofline or (bo.fixendofline and not bo.binary)
end

---@param bufnr integer
---@return boolean
function M.is_empty(bufnr)
  return api.nvim_buf_line_count(bufnr) == 1 and api.nvim_buf_get_lines(bufnr, 0, 1, false)[1] == ""
end

---Return the lines of a buffer; none for an empty one.
---@param bufnr integer
---@return string[]
function M.raw_lines(bufnr)
  return M.is_empty(bufnr) and {} or api.nvim_buf_get_lines(bufnr, 0, -1, false)
end

---Return the text of a buffer, encoded for the host.
---@param bufnr integer
---@return string
function M.text(bufnr)
  local lines = M.raw_lines(bufnr)
  if #lines == 0 then
    return ""
  end
  for row, line in ipairs(lines) do
    if line:find("\n", 1, true) then
      lines[row] = M.shown(line)
    end
  end
  local text = table.concat(lines, "\n") .. (M.has_final_newline(bufnr) and "\n" or "")
  if not text:find("[\128-\255]") or is_utf8:match(text) then
    return text
  end
  return mended:match(text)
end

---@param bufnr integer
---@return string
local function locked(bufnr)
  return not vim.bo[bufnr].modifiable and "nomodifiable" or vim.bo[bufnr].readonly and "readonly" or ""
end

---Describe a file for the host; without its text if it is too large.
---@param file { bufnr: integer, path: string }
---@return table
function M.describe(file)
  local bytes = api.nvim_buf_get_offset(file.bufnr, api.nvim_buf_line_count(file.bufnr))
  return {
    path = file.path,
    buffer = file.bufnr,
    tick = api.nvim_buf_get_changedtick(file.bufnr),
    modified = vim.bo[file.bufnr].modified,
    text = bytes <= MAX_BYTES and M.text(file.bufnr) or nil,
    locked = locked(file.bufnr),
  }
end

return M
