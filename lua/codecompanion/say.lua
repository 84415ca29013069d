---The one voice of the plugin: on the command line or through `vim.notify`, in the buffer of a chat, or as a passing
---hint. Nothing else prints. No sentence ever ends in a hit-enter prompt (lesson 38).

local severity = require("codecompanion.severity")

local M = {}

local PREFIX = "codecompanion: "
local REPEATED_MS = 500
---Cells that notification plugins put beside a line. Several of them cut it at the edge of the screen.
local NOTIFIED_MARGIN = 12
local HIGHLIGHTS = {
  [severity.ERROR] = "ErrorMsg",
  [severity.WARN] = "WarningMsg",
}

---Whether `vim.notify` is Neovim's own: it writes to the command line, where two messages in a row, or one that is too
---long, stop the editor until a key is pressed.
---@return boolean
local function is_builtin_notify()
  if type(vim.notify) ~= "function" then
    return false -- nvim-notify is a table that is called
  end
  local source = debug.getinfo(vim.notify, "S").source
  return source:find("^@vim/") ~= nil or source:find("^=?%?") ~= nil -- 0.12 has no names in its own modules
end

local last, last_at = "", 0

---What was said a moment ago is not said again: one event may reach several who report it.
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

---The first of several ways to say the same that fits; who speaks is left out, and folders of a path, before a word is.
---@param texts string[]
---@param room integer Cells there are
---@return string line
---@return boolean is_whole Whether it says all there is
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

---Say something on the command line, or through the `vim.notify` of a notification plugin.
---@param text string|string[] What to say; a list says the same in fewer and fewer words, for narrow screens
---@param level? CodeCompanion.Severity INFO when not given
function M.line(text, level)
  vim.schedule(function()
    local whole = type(text) == "table" and text[1] or text --[[@as string]]
    local line = PREFIX .. one_line(whole)
    if is_repeated(line) then
      return
    end
    if not is_builtin_notify() then
      local width = math.max(vim.o.columns - NOTIFIED_MARGIN, 20)
      local lines = require("codecompanion.text.fit").wrap(line, width)
      vim.notify(table.concat(lines, "\n"), level or severity.INFO) -- no title: the line begins with it
      return
    end
    if #vim.api.nvim_list_uis() > 0 then
      vim.cmd.redraw() -- forgets the message before, so that this one has the line for itself
      local is_whole
      line, is_whole = M.fitting(type(text) == "table" and text or { whole }, vim.v.echospace)
      if not is_whole then
        require("codecompanion.system.log").append(one_line(whole)) -- what does not fit can be read there
      end
    end
    vim.api.nvim_echo({ { line, HIGHLIGHTS[level] } }, true, {})
  end)
end

---The callback of a request whose answer is one sentence: it is said, or the error is.
---@param done? fun() Called after a success
---@param refuse? fun(reason: string) Takes the error in the place of the command line
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

---Say something that would be said again and again, once.
---@param text string
---@param level? CodeCompanion.Severity
function M.once(text, level)
  if not said_once[text] then
    said_once[text] = true
    M.line(text, level)
  end
end

---A short answer to a key: it leaves no trace in `:messages` and is cut before it could ask for a key.
---@param text string
function M.hint(text)
  local line, room = one_line(text), math.max(vim.v.echospace - 1, 1)
  if vim.api.nvim_strwidth(line) > room then
    line = require("codecompanion.text.shorten_sentence").line(line, room)
  end
  vim.api.nvim_echo({ { line } }, false, {})
end

---Take what stands on the command line away, such as the question of Neovim's own `vim.ui.input`.
function M.nothing()
  vim.api.nvim_echo({ { "" } }, false, {})
end

---How a sentence is put into the buffer of a chat; the chat gives it when it is loaded.
---@type fun(chat: table, text: string, level: CodeCompanion.Severity, hint?: string, while_paused?: boolean)?
M.draw = nil

---Say something in the buffer of a chat, below what is there; the same sentence twice in a row is said once.
---@param chat CodeCompanion.Chat
---@param text string
---@param level? CodeCompanion.Severity INFO when not given
---@param hint? string What can be done about it now
---@param while_paused? boolean It is taken away when editing and compaction are not paused any more
function M.chat(chat, text, level, hint, while_paused)
  if chat.tail_kind == "notice" and chat.said == text then
    return -- one failure may be reported for several requests
  end
  if M.draw then
    M.draw(chat, text, level or severity.INFO, hint, while_paused)
    chat.said = text
  else
    M.line(text, level)
  end
end

return M
