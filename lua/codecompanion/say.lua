---Shows all messages of the plugin: on the command line or through `vim.notify`, in a chat buffer, or as a transient
---hint. Nothing else prints. No message ever causes a hit-enter prompt (lesson 38).

local severity = require("codecompanion.severity")

local M = {}

local PREFIX = "codecompanion: "
local REPEATED_MS = 500
---Cells that notification plugins add beside a line; some plugins cut the line at the edge of the screen.
local NOTIFIED_MARGIN = 12
---Cells of Neovim's ruler and the space before it.
local RULER = 19
local HIGHLIGHTS = {
  [severity.ERROR] = "ErrorMsg",
  [severity.WARN] = "WarningMsg",
}

---Return whether `vim.notify` is Neovim's own: it writes to the command line, where two messages in a row, or a long
---one, block the editor until a key is pressed.
---@return boolean
function M.is_builtin_notify()
  if type(vim.notify) ~= "function" then
    return false -- nvim-notify is a callable table
  end
  local source = debug.getinfo(vim.notify, "S").source
  return source:find("^@vim/") ~= nil or source:find("^=?%?") ~= nil -- 0.12 has no names in its own modules
end

local last, last_at = "", 0

---Return whether a message was just shown: one event may be reported by several callers.
---@param line string
---@return boolean
local function is_repeated(line)
  local now = (vim.uv or vim.loop).now()
  local repeated = line == last and now - last_at < REPEATED_MS
  last, last_at = line, now
  return repeated
end

---@param text string
---@return string
local function one_line(text)
  return vim.trim((text:gsub("%s*\n%s*", " "):gsub("\t", " "):gsub("%z", "^@")))
end

---Return the first variant of a message that fits; the plugin's name and the folders of paths are omitted before words.
---@param texts string[]
---@param room integer Available cells
---@return string line
---@return boolean is_whole Whether nothing was omitted
function M.fitting(texts, room)
  local function fits(line)
    return vim.api.nvim_strwidth(line) <= room
  end
  local brief
  for index, text in ipairs(texts) do
    text = one_line(text)
    if fits(PREFIX .. text) then
      return PREFIX .. text, index == 1
    elseif fits(text) then
      return text, index == 1
    end
    brief = require("codecompanion.text.shorten_sentence")
    local short = brief.with_short_paths(text, room)
    if fits(short) then
      return short, false
    end
  end
  return brief.line(one_line(texts[#texts]), room), false
end

---Return the available cells of the command line. A float has no status line, so Neovim draws its ruler there.
---@return integer
local function room()
  local is_float = vim.api.nvim_win_get_config(0).relative ~= ""
  local with_ruler = vim.o.ruler and is_float and vim.o.columns - RULER or math.huge
  return math.max(1, math.min(vim.v.echospace, with_ruler))
end

---Show a message on the command line, or through the `vim.notify` of a notification plugin.
---@param text string|string[] The message; a list contains variants, longest first, for narrow screens
---@param level? CodeCompanion.Severity INFO by default
function M.line(text, level)
  vim.schedule(function()
    local whole = type(text) == "table" and text[1] or text --[[@as string]]
    local line = PREFIX .. one_line(whole)
    if is_repeated(line) then
      return
    end
    if not M.is_builtin_notify() then
      local width = math.max(vim.o.columns - NOTIFIED_MARGIN, 20)
      local lines = require("codecompanion.text.fit").wrap(line, width)
      vim.notify(table.concat(lines, "\n"), level or severity.INFO) -- no title: the line begins with it
      return
    end
    if #vim.api.nvim_list_uis() > 0 then
      vim.cmd.redraw() -- clears the previous message, so that this one has the line to itself
      local is_whole
      line, is_whole = M.fitting(type(text) == "table" and text or { whole }, room())
      if not is_whole then
        require("codecompanion.system.log").append(one_line(whole)) -- the full text can be read there
      end
    end
    vim.api.nvim_echo({ { line, HIGHLIGHTS[level] } }, true, {})
  end)
end

---Return a callback for a request answered with one sentence: it shows the answer or the error.
---@param done? fun() Called after success
---@param refuse? fun(reason: string) Receives the error instead of the command line
---@return fun(err: string?, sentence: string?)
function M.answer(done, refuse)
  return function(err, sentence)
    if err and refuse then
      return refuse(err)
    end
    if err then
      return M.line(err, severity.WARN)
    end
    M.line(sentence)
    if done then
      done()
    end
  end
end

local said_once = {}

---Show a recurring message only once.
---@param text string
---@param level? CodeCompanion.Severity
function M.once(text, level)
  if not said_once[text] then
    said_once[text] = true
    M.line(text, level)
  end
end

---Show a short response to a key: it is not stored in `:messages` and is cut before it could cause a prompt.
---@param text string|string[] The response; a list contains variants, longest first
function M.hint(text)
  local cells, line = math.max(room() - 1, 1), ""
  for _, variant in ipairs(type(text) == "table" and text or { text }) do
    line = one_line(variant)
    if vim.api.nvim_strwidth(line) <= cells then
      break
    end
  end
  if vim.api.nvim_strwidth(line) > cells then
    line = require("codecompanion.text.shorten_sentence").line(line, cells)
  end
  vim.api.nvim_echo({ { line } }, false, {})
end

---Clear the command line, for example after a question asked by Neovim's own `vim.ui.input`.
function M.nothing()
  vim.api.nvim_echo({ { "" } }, false, {})
end

---@class CodeCompanion.MessageDetails
---@field hint? string Suggested action
---@field while_paused? boolean It is removed when editing and compaction are no longer paused
---@field help? string Help tag that explains it
---@field is_aside? boolean It is about the folder, not the conversation: an empty chat keeps its intro, and the message
---above keeps its hint

---Function that puts a message into a chat buffer; set when the chat is loaded.
---@type fun(chat: table, text: string, level: CodeCompanion.Severity, details: CodeCompanion.MessageDetails)?
M.draw = nil

---Show a message in a chat buffer below its content; the same message twice in a row is shown once.
---@param chat CodeCompanion.Chat
---@param text string
---@param level? CodeCompanion.Severity INFO by default
---@param details? CodeCompanion.MessageDetails
function M.chat(chat, text, level, details)
  if chat.tail_kind == "notice" and chat.said == text then
    return -- one failure may be reported for several requests
  end
  if M.draw then
    M.draw(chat, text, level or severity.INFO, details or {})
    chat.said = text
  else
    M.line(text, level)
  end
end

return M
