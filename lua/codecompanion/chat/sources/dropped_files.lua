---Detects files dropped onto the terminal, which pastes their paths quoted, escaped or as `file://` URLs. The pasted
---text is unchanged; a hint shows the key that attaches the files.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local attaching = require("codecompanion.chat.sources.attach_to_chat")
local buffer = require("codecompanion.chat.buffer.chat_text")
local draft = require("codecompanion.chat.wire.draft")
local keys = require("codecompanion.chat.state.configured_keys")
local is_image = require("codecompanion.system.image_names")
local say = require("codecompanion.say")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

local ns = api.nvim_create_namespace("codecompanion.chat.dropped")
local MAX_BYTES = 16 * 1024

---@type table<integer, string> Pieces of a paste in progress, by buffer
local arriving = {}

---Return the next word as a shell would parse it: quoted, or with `\` before non-letters.
---@param text string
---@param at integer
---@return string? word
---@return integer next_at
local function word_at(text, at)
  at = text:find("%S", at) or #text + 1
  if at > #text then
    return nil, at
  end
  local quote = text:sub(at, at)
  if quote == "'" or quote == '"' then
    local closing = text:find(quote, at + 1, true)
    return closing and text:sub(at + 1, closing - 1) or nil, (closing or #text) + 1
  end
  local word = ""
  while at <= #text do
    local char = text:sub(at, at)
    if char:find("%s") then
      break
    elseif char == "\\" and at < #text then
      at, char = at + 1, text:sub(at + 1, at + 1)
    end
    word, at = word .. char, at + 1
  end
  return word, at
end

---@param word string
---@param any boolean Whether relative paths also count
---@return string? path
local function file_of(word, any)
  if word:find("^file://") then
    local ok, path = pcall(vim.uri_to_fname, word)
    word = ok and path or ""
  end
  if not any and not word:find("^[/~]") then
    return nil
  end
  local path = require("codecompanion.system.literal_paths").absolute(word)
  return word ~= "" and vim.fn.filereadable(path) == 1 and path or nil
end

---Return the files if a string consists only of file names, otherwise nothing.
---@param text string
---@param any? boolean Whether relative paths also count, because the user asked for it
---@return string[]
function M.files_in(text, any)
  if #text > MAX_BYTES or not text:find("%S") then
    return {}
  end
  local whole = file_of(vim.trim(text), any == true)
  if whole then
    return { whole }
  end
  local found, at = {}, 1
  while true do
    local word, next_at = word_at(text, at)
    at = next_at
    if not word then
      return text:find("%S", at) and {} or found
    end
    local path = file_of(word, any == true)
    if not path then
      return {}
    end
    found[#found + 1] = path
  end
end

---@param files string[]
---@return string
local function named(files)
  return #files == 1 and vim.fs.basename(files[1]) or ("%d files"):format(#files)
end

---Show a hint beside a pasted line that its files can be attached.
---@param chat CodeCompanion.Chat
---@param text string
local function offer(chat, text)
  local files, key = M.files_in(text), keys.keys("attach_path", "n")[1]
  local row = api.nvim_win_get_cursor(0)[1] - 1
  if #files == 0 or not key or api.nvim_get_current_buf() ~= chat.bufnr or row < anchors.position(chat, "input") then
    return
  end
  local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1]
  api.nvim_buf_clear_namespace(chat.bufnr, ns, 0, -1)
  api.nvim_buf_set_extmark(chat.bufnr, ns, row, 0, {
    end_col = #line,
    invalidate = true,
    undo_restore = false,
    virt_text = { { ("  %s attaches %s"):format(key, named(files)), "CodeCompanionHint" } },
    virt_text_pos = "eol",
  })
end

---Handle text pasted into a chat, possibly in pieces (`vim.paste`).
---@param chat CodeCompanion.Chat
---@param lines string[]
---@param phase -1|1|2|3
function M.pasted(chat, lines, phase)
  local begun = phase > 1 and arriving[chat.bufnr] or ""
  arriving[chat.bufnr] = #begun <= MAX_BYTES and begun .. table.concat(lines, "\n") or begun
  if phase == -1 or phase == 3 then
    local text = arriving[chat.bufnr]
    arriving[chat.bufnr] = nil
    vim.schedule(function()
      if api.nvim_buf_is_loaded(chat.bufnr) then
        offer(chat, text)
      end
    end)
  end
end

---Attach the files named in the line under the cursor, or the path under it. In the input, a line that contains only
---paths is removed; `u` restores it.
---@param chat CodeCompanion.Chat
function M.attach_here(chat)
  local row = view.cursor_row()
  local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1]
  local files, input = M.files_in(line, true), anchors.position(chat, "input")
  local is_line = #files > 0 and row >= input
  if #files == 0 then
    files = M.files_in(vim.fn.expand("<cfile>"), true)
  end
  if #files == 0 then
    return say.hint("No file here to attach: put the cursor on a path")
  end
  for _, path in ipairs(files) do
    attaching.attach(chat, { kind = is_image(path) and "image" or "file", path = path })
  end
  if is_line then
    local lines = vim.split(buffer.input_text(chat), "\n", { plain = true })
    table.remove(lines, row - input + 1)
    api.nvim_buf_clear_namespace(chat.bufnr, ns, 0, -1)
    draft.set(chat, table.concat(lines, "\n"))
  end
end

return M
