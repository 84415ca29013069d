---Provides the contents of all open buffers for `#{buffers}`: captured at one moment, prepared in slices afterwards.
---
---Captured text belongs to one `changedtick` of its buffer and is cached for a while, so capturing hundreds of buffers
---mostly means comparing numbers. Later typing does not affect captured text. While the user types a message that
---mentions them, the contents are read ahead (`read_soon`).

local api = vim.api
local lines = require("codecompanion.editor_context.buffer_lines")
local open_files = require("codecompanion.editor_context.open_files")
local place = require("codecompanion.editor_context.working_window")

local M = {}

local MAX_BUFFERS = 200
local SLICE_MS, PAUSE_MS = 2, 1
local FORGET_AFTER_MS = 60000

---The text of a buffer at one moment, or why it has none.
---@class CodeCompanion.HeldText
---@field tick integer
---@field bytes integer
---@field unsaved boolean
---@field language string
---@field lines? string[] Present until the lines are joined
---@field text? string
---@field problem? string

---@type table<integer, CodeCompanion.HeldText>
local remembered = {}
local timer ---@type uv.uv_timer_t?
local is_reading = false

---Run `each` for 1 to `count`, a few milliseconds at a time. `done` receives the error, if there was one.
---@param count integer
---@param each fun(at: integer)
---@param done fun(problem?: string)
local function in_slices(count, each, done)
  local at = 0
  local function slice()
    local began = vim.uv.hrtime()
    repeat
      at = at + 1
      if at > count then
        return done()
      end
      local ok, problem = pcall(each, at)
      if not ok then
        return done(tostring(problem))
      end
    until vim.uv.hrtime() - began > SLICE_MS * 1e6
    vim.defer_fn(slice, PAUSE_MS)
  end
  vim.schedule(slice)
end

local function forget_later()
  timer = timer or assert(vim.uv.new_timer())
  timer:start(FORGET_AFTER_MS, 0, function()
    remembered = {}
  end)
end

---Return the current text of a buffer, or nil if it is not loaded and its file contains the text.
---@param bufnr integer
---@return CodeCompanion.HeldText?
local function hold(bufnr)
  if not api.nvim_buf_is_valid(bufnr) then
    return nil
  end
  local tick, known = api.nvim_buf_get_changedtick(bufnr), remembered[bufnr]
  if known and known.tick == tick then
    return known
  end
  if not api.nvim_buf_is_loaded(bufnr) then
    return nil
  end
  local problem, bytes = lines.too_large(bufnr)
  local held = { tick = tick, bytes = bytes, problem = problem } ---@type CodeCompanion.HeldText
  held.unsaved = vim.fn.getbufvar(bufnr, "&modified") == 1
  held.language = vim.fn.getbufvar(bufnr, "&filetype")
  held.lines = not problem and api.nvim_buf_get_lines(bufnr, 0, -1, false) or nil
  remembered[bufnr] = held
  return held
end

---Capture buffers, until there is far more text than can be sent.
---@param files CodeCompanion.OpenFile[]
---@return table<integer, CodeCompanion.HeldText> held By buffer
---@return boolean is_all
local function hold_all(files)
  local held, bytes = {}, 0
  for _, file in ipairs(files) do
    local one = hold(file.bufnr)
    held[file.bufnr] = one
    bytes = bytes + (one and not one.problem and one.bytes or 0)
    if bytes > 2 * lines.MAX_BYTES then
      return held, false
    end
  end
  return held, true
end

---Return the buffers, most recently used first, followed by those closed since the message was sent.
---@param files CodeCompanion.OpenFile[]
---@return CodeCompanion.OpenFile[]
local function in_order(files)
  local by_bufnr, found = {}, {}
  for _, file in ipairs(files) do
    by_bufnr[file.bufnr] = file
  end
  for _, bufnr in ipairs(place.buffers()) do
    found[#found + 1], by_bufnr[bufnr] = by_bufnr[bufnr], nil
  end
  for _, file in ipairs(files) do
    if by_bufnr[file.bufnr] and not api.nvim_buf_is_valid(file.bufnr) then
      found[#found + 1] = file
    end
  end
  return found
end

---Join the lines of a captured buffer.
---@param bufnr integer
---@param held CodeCompanion.HeldText
local function make_ready(bufnr, held)
  if held.lines then
    held.text, held.problem = lines.checked(bufnr, held.lines)
    held.lines = nil
  end
end

---@param file CodeCompanion.OpenFile
---@param held CodeCompanion.HeldText
---@return CodeCompanion.EditorContext.Text? text nil if there is no text or it cannot be sent
---@return string? problem
local function text_of(file, held)
  make_ready(file.bufnr, held)
  if not held.text then
    return nil, held.problem
  end
  return {
    text = held.text,
    title = file.name == "" and ("buffer %d"):format(file.bufnr) or nil,
    path = file.name,
    first = 1,
    whole = true,
    language = held.language,
    unsaved = held.unsaved,
  }
end

---@param file CodeCompanion.OpenFile
---@return string
local function beyond(file)
  local name = file.name ~= "" and place.short(file.name) or ("buffer %d"):format(file.bufnr)
  return ("%s is over the total limit of %d MB"):format(name, lines.MAX_BYTES / 1e6)
end

---Build the texts to send from the captured buffers.
---@param files CodeCompanion.OpenFile[] In order of priority
---@param held table<integer, CodeCompanion.HeldText>
---@param is_all boolean Whether all loaded buffers were captured
---@param done fun(content: table)
local function make_texts(files, held, is_all, done)
  local texts, left_out, bytes = {}, {}, 0
  local function add(at)
    local file = files[at]
    local text, why
    local is_beyond = not is_all and not held[file.bufnr] and api.nvim_buf_is_loaded(file.bufnr)
    if held[file.bufnr] then
      text, why = text_of(file, held[file.bufnr])
    elseif not is_beyond and api.nvim_buf_is_valid(file.bufnr) then
      text, why = lines.text(file.bufnr)
    end
    if is_beyond or text and bytes + #text.text > lines.MAX_BYTES then
      text, why = nil, beyond(file)
    end
    bytes = bytes + (text and #text.text or 0)
    texts[#texts + 1], left_out[#left_out + 1] = text, why
  end
  in_slices(math.min(#files, MAX_BUFFERS), add, function(problem)
    if problem then
      return done({ error = problem })
    end
    if #files > MAX_BUFFERS then
      left_out[#left_out + 1] = ("… %d more"):format(#files - MAX_BUFFERS)
    end
    if #left_out > 0 then
      table.insert(texts, 1, { text = lines.join(left_out), title = "open files that were left out" })
    end
    done(#texts > 0 and texts or { nothing = "no file is open" })
  end)
end

---Pass the current contents of all open buffers, and the names of omitted ones, to `done`.
---@param done fun(content: table)
function M.give(done)
  local files = open_files.listed()
  local held, is_all = hold_all(files)
  if not is_all then
    files = in_order(files) -- the order decides which of them are sent
    held = hold_all(files)
  end
  forget_later()
  vim.schedule(function()
    make_texts(is_all and in_order(files) or files, held, is_all, done)
  end)
end

---Read the contents ahead while the user types a message that mentions them.
function M.read_soon()
  if is_reading then
    return
  end
  is_reading = true
  local files, bytes = open_files.listed(), 0
  in_slices(#files, function(at)
    local held = bytes <= lines.MAX_BYTES and hold(files[at].bufnr)
    if held then
      make_ready(files[at].bufnr, held)
      bytes = bytes + held.bytes
    end
  end, function()
    is_reading = false
    forget_later()
  end)
end

return M
