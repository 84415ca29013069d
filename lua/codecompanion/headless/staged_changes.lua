---Prepares the staged changes of the current folder's repository for a model: the diff without the contents of key
---files, cut to the available space, and the latest commits. The host reads them, because the editor does not run git.

local M = {}

local CHARS_PER_TOKEN, SHARE = 3, 0.5 -- share of the context window for the diff
local MIN_CHARS, MAX_CHARS = 2000, 150000

---@class CodeCompanion.Staged
---@field diff string "" if nothing is staged
---@field stat string
---@field subjects string Subjects of the latest commits
---@field secret string[] Files whose names suggest secrets; their contents are omitted

---@param diff string
---@return { name: string, lines: string[], chars: integer }[]
local function files_of(diff)
  local files = {}
  for _, line in ipairs(vim.split(diff, "\n", { plain = true })) do
    local name = line:match("^diff %-%-git .- b/(.*)$") or line:match("^diff %-%-%S+ (.*)$")
    if name or #files == 0 then
      files[#files + 1] = { name = name or "", lines = {}, chars = 0 }
    end
    local file = files[#files]
    file.lines[#file.lines + 1] = line
    file.chars = file.chars + #line + 1
  end
  return files
end

---Return how many bytes of each file fit, shortening large files first.
---@param files { chars: integer }[]
---@param room integer
---@return integer
local function share_of(files, room)
  local sizes = vim.tbl_map(function(file)
    return file.chars
  end, files)
  table.sort(sizes)
  for index, size in ipairs(sizes) do
    local equal = math.floor(room / (#sizes - index + 1))
    if size > equal then
      return equal
    end
    room = room - size
  end
  return math.huge
end

---Cut a diff to a size: the beginning of each file is kept, and the omission is noted.
---@param diff string
---@param room integer In bytes
---@return string
---@return integer cut Number of shortened files
---@return integer files
function M.cut(diff, room)
  local files, parts, cut = files_of(diff), {}, 0
  local share = share_of(files, room)
  for _, file in ipairs(files) do
    local left, used = share, 0
    for index, line in ipairs(file.lines) do
      left = left - #line - 1
      if left < 0 and used > 0 then
        cut = cut + 1
        parts[#parts + 1] = ("[%d more lines of this file omitted]"):format(#file.lines - index + 1)
        break
      end
      used = used + 1
      parts[#parts + 1] = left < 0 and line:sub(1, math.max(0, share)) or line
    end
  end
  return table.concat(parts, "\n"), cut, #files
end

---Return the diff for a model with this context window.
---@param staged CodeCompanion.Staged
---@param window integer The model's context window in tokens; 0 = unknown
---@return string text Includes the list of all files if the diff was cut
---@return string? said Note for the user about omitted changes
function M.text(staged, window)
  local room = math.floor(window * SHARE * CHARS_PER_TOKEN)
  room = math.max(MIN_CHARS, math.min(room > 0 and room or MAX_CHARS, MAX_CHARS))
  local diff, cut, count = M.cut(staged.diff, room)
  local text = "The staged diff:\n" .. diff
  if cut == 0 then
    return text
  end
  local stat = "All files:\n" .. vim.fn.strcharpart(staged.stat, 0, math.floor(room / 4))
  return stat .. "\n\n" .. text, ("The diff is large: %d of %d files were cut for the model."):format(cut, count)
end

---Read the staged changes. `git commit` may set another index (`git commit -a`) or repository for its editor.
---@param done fun(problem?: string, staged?: CodeCompanion.Staged)
function M.read(done)
  local told = vim.env
  require("codecompanion.host").request("read_staged", {
    cwd = vim.fn.getcwd(),
    index = told.GIT_INDEX_FILE or "",
    git_dir = told.GIT_DIR or "",
    work_tree = told.GIT_WORK_TREE or "",
  }, done)
end

return M
