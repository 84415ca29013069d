---`:CodeCompanion commit`: writes a commit message for the staged changes in the style of the repository.
---
---The message is inserted into the commit buffer above the comments, as one undo step; text typed there is kept.
---Without a commit buffer it is shown in its own window.

local api = vim.api
local model_name = require("codecompanion.text.model_name")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local staged_files = require("codecompanion.headless.staged_changes")

local M = {}

---Return the prompt.
---@param staged CodeCompanion.Staged
---@param typed string Text typed above the comments
---@param window integer The model's context window in tokens; 0 = unknown
---@return string text
---@return string? said Note for the user about omitted changes
local function question(staged, typed, window)
  local parts = {}
  if staged.subjects ~= "" then
    parts[#parts + 1] = "Subjects of the newest commits:\n" .. staged.subjects
  end
  if typed ~= "" then
    parts[#parts + 1] = "The user has started the message with this; continue it without repeating it:\n" .. typed
  end
  local text, said = staged_files.text(staged, window)
  parts[#parts + 1] = text
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

---Return the number of lines above the comments of a commit buffer.
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

---Return the text typed above the comments.
---@param bufnr integer
---@return string
local function typed_in(bufnr)
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  return vim.trim(table.concat(vim.list_slice(lines, 1, above_comments(lines)), "\n"))
end

---Insert the message above the comments, after the typed text, as one undo step.
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
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels -- start a new undo step, separate from current typing
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

---Return the commit buffer: the current one, or a visible one.
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
    return say.line("Commit message written; u removes it")
  end
  show(message)
end

---@param bufnr? integer
---@param staged CodeCompanion.Staged
---@param typed string
local function ask(bufnr, staged, typed)
  require("codecompanion.headless.headless_question").ask({
    purpose = "commit_message",
    what = "the commit message",
    options = require("codecompanion.config").options.interactions.commit,
    text = function(opened)
      local text, said = question(staged, typed, opened.window or 0)
      local model = model_name(opened.adapter, opened.model)
      local stops = "; :CodeCompanion cancel stops it"
      say.line(said or {
        ("Writing the commit message with %s%s"):format(model, stops),
        "Writing the commit message" .. stops,
      })
      return text
    end,
    on_reply = function(text)
      local message = read(text)
      if not message then
        return say.line("The model's reply was empty; nothing was written", severity.WARN)
      end
      put(bufnr, message)
    end,
  })
end

---@param problem string
local function fail(problem)
  say.line(("No commit message: %s"):format(problem), severity.WARN)
end

---Write the commit message for the staged changes.
function M.run()
  if require("codecompanion.editor_context.send_code").refuses("A commit message") then
    return
  end
  local bufnr = commit_buffer()
  local typed = bufnr and typed_in(bufnr) or ""
  staged_files.read(function(problem, staged)
    if not staged then
      return fail(problem or "the Python process did not answer")
    elseif staged.diff == "" then
      return say.line("Nothing is staged; run `git add` first", severity.WARN)
    elseif #staged.secret > 0 then
      local names = table.concat(staged.secret, ", ")
      say.line(("%s is staged and may contain keys or passwords; its text is not sent"):format(names), severity.WARN)
    end
    ask(bufnr, staged, typed)
  end)
end

return M
