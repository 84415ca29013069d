---Chat buffers by name, `codecompanion://<chat id>`: handles Vim commands on them (`:e`, `:b`, a session file).

local api = vim.api

local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

local PREFIX = "codecompanion://"

---@param id string
---@return string
function M.of(id)
  return PREFIX .. id
end

---Return the id of the chat that a buffer is named after.
---@param bufnr integer
---@return string? id
function M.id_of(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  local id = name:sub(1, #PREFIX) == PREFIX and name:sub(#PREFIX + 1) or ""
  return id:find("^[%w_-]+$") and id or nil
end

---Return the buffer with the name of a chat, loaded or not.
---@param id string
---@return integer? bufnr
function M.buffer_of(id)
  local wanted = M.of(id)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_get_name(bufnr) == wanted then
      return bufnr
    end
  end
end

---@param chat CodeCompanion.Chat
local function restore(chat)
  if not api.nvim_buf_is_valid(chat.bufnr) or api.nvim_buf_get_name(chat.bufnr) == M.of(chat.id) then
    return
  end
  local function wipe(name)
    for _, bufnr in ipairs(api.nvim_list_bufs()) do
      if bufnr ~= chat.bufnr and api.nvim_buf_get_name(bufnr) == name and not api.nvim_buf_is_loaded(bufnr) then
        pcall(api.nvim_buf_delete, bufnr, { force = true })
      end
    end
  end
  local given = api.nvim_buf_get_name(chat.bufnr)
  wipe(M.of(chat.id)) -- Vim keeps each former name of a buffer as an empty buffer
  local before = api.nvim_list_bufs()
  local ok, problem = pcall(api.nvim_buf_set_name, chat.bufnr, M.of(chat.id))
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if given ~= "" and not vim.list_contains(before, bufnr) then
      wipe(given)
    end
  end
  if not ok then
    say.line(tostring(problem), severity.WARN)
  end
end

---Restore the name of a renamed chat buffer (`:file`, `:saveas`), because it identifies the chat.
---@param chat CodeCompanion.Chat
function M.keep(chat)
  if api.nvim_buf_get_name(chat.bufnr) == M.of(chat.id) then
    return
  end
  chat.exported = nil
  -- later: `:saveas` still needs the buffer that has taken the name
  vim.schedule(function()
    restore(chat)
    if not chat.exported then
      say.line({
        "A chat keeps its name; :w {file} writes its text to a file, /title sets its title",
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
    return say.line(("Not written to %s:%s"):format(shown, reason), severity.ERROR)
  end
  say.line(("%s written to %s"):format(numbers.counted(#lines, "line"), shown))
end

return M
