---Names chat buffers after the title and id of their chat: `codecompanion://fix the failing test · 3f2a91bc04de`. The
---id alone identifies the chat, so a name stays valid after the title changes (`:e`, `:b`, a session file); the title
---is for people, and the name follows it.

local api = vim.api

local chat_title = require("codecompanion.chat.state.chat_title")
local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

M.PREFIX = "codecompanion://"

local BETWEEN = " · "
local MAX_TITLE = 40 -- cells

---Return a title without characters that are special in a command line, a file pattern, a status line or a path.
---@param title string
---@return string
local function plain(title)
  local text = title:gsub("[/\\|]", "-"):gsub("[`']", "’"):gsub("[^%w%s%.%-_+=:@,()\128-\255]", " ")
  text = text:gsub("%c", " ")
  local kept = {}
  for _, char in ipairs(vim.fn.split(text, "\\zs")) do
    -- invisible and directional characters, and unusual blanks
    kept[#kept + 1] = #char > 1 and vim.fn.strtrans(char) ~= char and " " or char
  end
  text = vim.trim((table.concat(kept):gsub("%s+", " "))):gsub("^[-+.]+%s*", "")
  return require("codecompanion.text.fit").cut(text, MAX_TITLE)
end

---Return the name of a chat's buffer.
---@param id string
---@param title? string
---@return string
function M.of(id, title)
  return M.PREFIX .. chat_title.shown(plain(title or "")) .. BETWEEN .. id
end

---Return the id of the chat that a buffer is named after; earlier versions named it after the id alone.
---@param bufnr integer
---@return string? id
function M.id_of(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  if not vim.startswith(name, M.PREFIX) then
    return nil
  end
  local text = name:sub(#M.PREFIX + 1)
  return text:match("^.*" .. BETWEEN .. "([%w_-]+)$") or text:match("^[%w_-]+$")
end

---Return the buffer that is named after the chat, loaded or not.
---@param id string
---@return integer? bufnr
function M.buffer_of(id)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if M.id_of(bufnr) == id then
      return bufnr
    end
  end
end

---Delete unloaded buffers with this name: Vim keeps each former name of a buffer as an empty buffer.
---@param name string
---@param chat CodeCompanion.Chat
local function wipe(name, chat)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if bufnr ~= chat.bufnr and api.nvim_buf_get_name(bufnr) == name and not api.nvim_buf_is_loaded(bufnr) then
      pcall(api.nvim_buf_delete, bufnr, { force = true })
    end
  end
end

---Rename the buffer of a chat; the alternate file (`#`) and the list of buffers stay as they are.
---@param chat CodeCompanion.Chat
---@param name string
---@return string? problem
local function rename(chat, name)
  local given, before = api.nvim_buf_get_name(chat.bufnr), api.nvim_list_bufs()
  wipe(name, chat)
  chat.buffer_name = name -- first, so that the event of its name is ignored
  local ok, problem = pcall(api.nvim_buf_call, chat.bufnr, function()
    vim.cmd.file({ args = { name }, magic = { file = false, bar = false }, mods = { keepalt = true, silent = true } })
  end)
  chat.buffer_name = ok and name or given
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if given ~= "" and not vim.list_contains(before, bufnr) then
      wipe(given, chat)
    end
  end
  return not ok and tostring(problem) or nil
end

---Rename the buffer of a chat whose title has changed. While the title is unknown, a name with its id is kept.
---@param chat CodeCompanion.Chat
function M.follow(chat)
  local name = M.of(chat.id, chat.title)
  local present = api.nvim_buf_is_valid(chat.bufnr) and api.nvim_buf_get_name(chat.bufnr) or name
  if present ~= name and (chat.title ~= "" or M.id_of(chat.bufnr) ~= chat.id) then
    rename(chat, name) -- if another buffer has the name, the current one still identifies the chat
  end
end

---Name the buffer of a new chat; a buffer that is already named after the chat keeps its name.
---@param chat CodeCompanion.Chat
---@param bufnr integer
function M.give(chat, bufnr)
  if M.id_of(bufnr) ~= chat.id then
    chat.buffer_name = M.of(chat.id, chat.title)
    api.nvim_buf_set_name(bufnr, chat.buffer_name)
  end
  chat.buffer_name = api.nvim_buf_get_name(bufnr)
end

---Restore the name of a renamed chat buffer (`:file`, `:saveas`), because the name identifies the chat.
---@param chat CodeCompanion.Chat
function M.keep(chat)
  if api.nvim_buf_get_name(chat.bufnr) == chat.buffer_name then
    return
  end
  local name = chat.buffer_name
  chat.exported = nil
  -- later: `:saveas` still needs the buffer that has taken the name
  vim.schedule(function()
    local problem
    if api.nvim_buf_is_valid(chat.bufnr) and api.nvim_buf_get_name(chat.bufnr) ~= name then
      problem = rename(chat, name)
    end
    if problem then
      say.line(problem, severity.WARN)
    end
    if not chat.exported then
      say.line({
        "A chat keeps its name; :w {file} writes its text to a file, /rename sets its title",
        "A chat keeps its name; :w {file} writes its text",
      })
    end
  end)
end

---Write the text of a chat buffer to a file (`:w {file}`, `:saveas {file}`).
---@param chat CodeCompanion.Chat
---@param path string
function M.export(chat, path)
  local lines = api.nvim_buf_get_lines(chat.bufnr, 0, -1, false)
  local shown = vim.fn.fnamemodify(path, ":~:.")
  chat.exported = true
  local file, problem = io.open(path, "w")
  local ok = file ~= nil
  if file then
    ok, problem = file:write(table.concat(lines, "\n"), "\n")
    file:close()
  end
  if not ok then
    local reason = tostring(problem):match("[^:]*$")
    return say.line(("Cannot write to %s:%s"):format(shown, reason), severity.ERROR)
  end
  say.line(("%s written to %s"):format(numbers.counted(#lines, "line"), shown))
end

return M
