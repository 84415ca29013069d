---`:CodeCompanion commit`: the message of a commit from what is staged, in the style of the repository.
---
---It goes into the commit buffer, above the comments, as one undo step; what the user typed there stays. Without a
---commit buffer it is shown in a window of its own. Git is asked in the editor, because `git commit` may have told its
---editor of another index (`git commit -a`); it runs nothing of the repository's.

local api = vim.api
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

local GIT =
  { "git", "--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null" }
local GIT_MS = 10000
local SUBJECTS = 12
local CHARS_PER_TOKEN, SHARE = 3, 0.5 -- of the context window, for the diff
local MIN_CHARS, MAX_CHARS = 2000, 150000

---@param arguments string[]
---@param done fun(problem?: string, output: string)
local function git(arguments, done)
  local command = vim.list_extend(vim.list_extend({}, GIT), arguments)
  local options = { text = true, timeout = GIT_MS, env = { LC_ALL = "C", GIT_TERMINAL_PROMPT = "0" } }
  local ok, problem = pcall(vim.system, command, options, function(result)
    vim.schedule(function()
      if result.code == 0 then
        return done(nil, result.stdout or "")
      end
      local text = vim.trim((result.stderr or ""):match("^[^\n]*") or "")
      done(text ~= "" and text or "git did not answer in time", "")
    end)
  end)
  if not ok then
    done(tostring(problem):find("ENOENT", 1, true) and "there is no git" or tostring(problem), "")
  end
end

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

---How many bytes of each file fit, when large files give way to small ones.
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

---Cut a diff to a size: every file keeps its beginning, and it is said what is left out.
---@param diff string
---@param room integer In bytes
---@return string
---@return integer cut How many files were
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
        parts[#parts + 1] = ("[%d more lines of this file are left out]"):format(#file.lines - index + 1)
        break
      end
      used = used + 1
      parts[#parts + 1] = left < 0 and line:sub(1, math.max(0, share)) or line
    end
  end
  return table.concat(parts, "\n"), cut, #files
end

---@class CodeCompanion.Staged
---@field diff string
---@field stat string
---@field subjects string Of the newest commits
---@field typed string What stands in the commit buffer above the comments

---What the model is asked.
---@param staged CodeCompanion.Staged
---@param window integer Of the model, in tokens; 0 = unknown
---@return string text
---@return string? cut What was left out, for the user
function M.question(staged, window)
  local room = math.floor(window * SHARE * CHARS_PER_TOKEN)
  room = math.max(MIN_CHARS, math.min(room > 0 and room or MAX_CHARS, MAX_CHARS))
  local diff, cut, count = M.cut(staged.diff, room)
  local parts = {}
  if staged.subjects ~= "" then
    parts[#parts + 1] = "Subjects of the newest commits:\n" .. staged.subjects
  end
  if staged.typed ~= "" then
    parts[#parts + 1] = "The user has begun the message with this; go on from it without repeating it:\n"
      .. staged.typed
  end
  if cut > 0 then
    parts[#parts + 1] = "All files:\n" .. vim.fn.strcharpart(staged.stat, 0, math.floor(room / 4))
  end
  parts[#parts + 1] = "The staged diff:\n" .. diff
  local said = cut > 0 and ("The diff is large: %d of %d files were cut for the model."):format(cut, count) or nil
  return table.concat(parts, "\n\n"), said
end

---@param lines string[]
---@return string
local function comment_char(lines)
  for _, line in ipairs(lines) do
    local char = line:match("^(%p) %-+ >8 %-+") or line:match("^(%p) Please enter the commit message")
    if char then
      return char
    end
  end
  return "#"
end

---Where the comments of a commit buffer begin: the number of lines above them.
---@param lines string[]
---@return integer
local function above_comments(lines)
  local char = comment_char(lines)
  for index, line in ipairs(lines) do
    if vim.startswith(line, char) then
      return index - 1
    end
  end
  return #lines
end

---What the user typed above the comments.
---@param bufnr integer
---@return string
local function typed_in(bufnr)
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  return vim.trim(table.concat(vim.list_slice(lines, 1, above_comments(lines)), "\n"))
end

---Put the message above the comments, after what the user typed, as one undo step.
---@param bufnr integer
---@param message string[]
local function insert(bufnr, message)
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local last = above_comments(lines)
  while last > 0 and lines[last]:find("^%s*$") do
    last = last - 1
  end
  local blank = last
  while lines[blank + 1] and lines[blank + 1]:find("^%s*$") do
    blank = blank + 1
  end
  local new = last > 0 and { "" } or {}
  vim.list_extend(new, message)
  if lines[blank + 1] then
    new[#new + 1] = ""
  end
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels -- what is being typed is another step
  api.nvim_buf_set_lines(bufnr, last, blank, false, new)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
end

---@param message string[]
local function show(message)
  vim.cmd("botright new")
  local bufnr = api.nvim_get_current_buf()
  vim.bo[bufnr].buftype, vim.bo[bufnr].bufhidden, vim.bo[bufnr].swapfile = "nofile", "wipe", false
  api.nvim_buf_set_lines(bufnr, 0, -1, false, message)
  vim.bo[bufnr].filetype = "gitcommit"
  vim.cmd.resize(math.min(math.max(#message + 1, 5), math.floor(vim.o.lines / 2)))
  say.line("The commit message is in this window; yank it, or :w it to a file")
end

---@param answer string
---@return string[]? message
local function read(answer)
  local text = vim.trim((answer:gsub("\r", "")))
  text = vim.trim(text:match("^```[%w_-]*\n(.-)\n?```$") or text)
  text = text:gsub("[%z\1-\8\11-\31\127]", "")
  return text ~= "" and vim.split(text, "\n", { plain = true }) or nil
end

---The commit buffer: this one, or one that is shown.
---@return integer?
local function commit_buffer()
  local wins = vim.list_extend({ api.nvim_get_current_win() }, api.nvim_tabpage_list_wins(0))
  for _, win in ipairs(wins) do
    local bufnr = api.nvim_win_get_buf(win)
    if vim.bo[bufnr].filetype == "gitcommit" and vim.bo[bufnr].buftype == "" then
      return bufnr
    end
  end
end

---@param bufnr? integer
---@param message string[]
local function put(bufnr, message)
  if bufnr and api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modifiable then
    insert(bufnr, message)
    return say.line("The commit message is written; u takes it out")
  end
  show(message)
end

---@param bufnr? integer
---@param staged CodeCompanion.Staged
local function ask(bufnr, staged)
  local options = require("codecompanion.config").options.interactions.commit
  require("codecompanion.headless_chat").ask({
    purpose = "commit_message",
    what = "the commit message",
    adapter = options.adapter,
    timeout_ms = options.timeout,
    on_done = function(answer)
      if answer.error then
        return say.line(answer.error, answer.stopped and severity.INFO or severity.ERROR)
      end
      local message = read(answer.text)
      if not message then
        return say.line("The model answered with nothing; nothing was written", severity.WARN)
      end
      put(bufnr, message)
    end,
  }, function(opened)
    local text, cut = M.question(staged, opened.window or 0)
    say.line(cut or "Writing the commit message; :CodeCompanion cancel stops it")
    return text
  end)
end

---Ask which staged files hold keys or passwords by their name; their text is not for a model.
---@param done fun(problem?: string, secret: string[])
local function staged_secrets(done)
  local names = { "diff", "--cached", "--no-ext-diff", "--name-only", "--no-renames", "-z" }
  git(names, function(problem, output)
    local staged = vim.split(output, "\0", { plain = true, trimempty = true })
    if problem then
      return done(("No commit message: %s"):format(problem), {})
    elseif #staged == 0 then
      return done("Nothing is staged; `git add` first", {})
    end
    require("codecompanion.host").request("find_secret_files", { names = staged }, function(err, secret)
      done(err and ("No commit message: %s"):format(err) or nil, secret or {})
    end)
  end)
end

---@param secret string[]
---@return string[] arguments That keep the text of these files out of a diff
local function without(secret)
  if #secret == 0 then
    return {}
  end
  local arguments = { "--", ":(top)" }
  for _, name in ipairs(secret) do
    arguments[#arguments + 1] = ":(top,exclude,literal)" .. name
  end
  return arguments
end

---@param typed string By the user, above the comments
---@param bufnr? integer
---@param secret string[]
local function write(typed, bufnr, secret)
  local staged = { typed = typed }
  local shown = { "diff", "--cached", "--no-ext-diff", "--no-textconv", "--no-color", "-M" }
  git(vim.list_extend(shown, without(secret)), function(problem, diff)
    if problem then
      return say.line(("No commit message: %s"):format(problem), severity.WARN)
    end
    for _, name in ipairs(secret) do
      diff = diff .. ("diff --git a/%s b/%s\n(its text is left out: a file of keys or passwords)\n"):format(name, name)
    end
    staged.diff = diff
    git({ "diff", "--cached", "--no-ext-diff", "--no-color", "-M", "--stat=80" }, function(_, stat)
      staged.stat = vim.trim(stat)
      git({ "log", "-n", tostring(SUBJECTS), "--no-merges", "--format=%s" }, function(_, subjects)
        staged.subjects = vim.trim(subjects) -- none in a repository without a commit
        ask(bufnr, staged)
      end)
    end)
  end)
end

---Write the message of what is staged.
function M.run()
  local bufnr = commit_buffer()
  local typed = bufnr and typed_in(bufnr) or ""
  staged_secrets(function(problem, secret)
    if problem then
      return say.line(problem, severity.WARN)
    end
    if #secret > 0 then
      local names = table.concat(secret, ", ")
      say.line(("%s is staged: a file of keys or passwords. Its text is not sent"):format(names), severity.WARN)
    end
    write(typed, bufnr, secret)
  end)
end

return M
