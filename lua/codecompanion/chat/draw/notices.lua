---Manages the notices in a chat buffer, which are kept so that a redraw shows them in the same place. The log records
---how turns ended; all others are stored only here, until Neovim exits.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local buffer = require("codecompanion.chat.buffer.chat_text")
local marks = require("codecompanion.chat.buffer.row_marks")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

local MAX = 200
local AT_END = "end"

---Events that make a notice obsolete: the input is sent, a reply arrives, the same question is answered, the chat is
---compacted, the list of files waiting for trust changes, or no chat is missing any more.
---@alias CodeCompanion.NoticeEnd "input"|"reply"|"answer"|"compaction"|"trust"|"restored"

---@class CodeCompanion.Notice
---@field text string
---@field level CodeCompanion.Severity
---@field hint? string Suggested action, shown until something follows the notice
---@field after string Key of the message, call or card above it, "" at the top
---@field opening? boolean It is repeated whenever the host opens the chat
---@field holds_until? CodeCompanion.NoticeEnd The event that makes it obsolete
---@field while_paused? boolean It is valid while automatic editing and compaction are paused
---@field help? string Help tag that explains it
---@field is_aside? boolean It is about the folder, not the conversation
---@field mark? integer Extmark of its line, once drawn

---Fields that identify items of the buffer and entries of the log.
local IDS = {
  { "message_id", "message:" },
  { "call_id", "call:" },
  { "compaction_id", "change:" },
  { "cleared_by", "change:" },
  { "change_id", "change:" },
}

---Return the keys of an item or an entry, the most specific first.
---@param shown table
---@return string[]
local function keys_of(shown)
  local keys = {}
  for _, id in ipairs(IDS) do
    local value = shown[id[1]]
    if value and value ~= "" and shown.kind ~= "edited" then -- the mark of an edit is not an item
      keys[#keys + 1] = id[2] .. value
    end
  end
  return keys
end

---Return the key of the content above the insertion point of machine text.
---@param chat CodeCompanion.Chat
---@return string
local function key_above(chat)
  local tail = anchors.position(chat, "tail")
  local found = tail > 0 and api.nvim_buf_get_extmarks(chat.bufnr, marks.items, { tail - 1, -1 }, 0, { limit = MAX })
  for _, mark in ipairs(found or {}) do
    local key = chat.items[mark[1]] and keys_of(chat.items[mark[1]])[1]
    if key then
      return key
    end
  end
  return ""
end

---Record a notice that is about to be drawn at the end of the transcript.
---@param chat CodeCompanion.Chat
---@param text string
---@param level CodeCompanion.Severity
---@param details CodeCompanion.MessageDetails
---@return CodeCompanion.Notice
function M.remember(chat, text, level, details)
  local list, shown = chat.notices, { text = text, level = level, after = key_above(chat), opening = chat.is_opening }
  local notice = vim.tbl_extend("error", shown, details)
  list[#list + 1] = notice
  chat.restore.noted[notice] = true
  if #list > MAX then
    table.remove(list, 1)
  end
  return notice
end

---Record a notice that could not be drawn: it is shown at the end of the next drawing.
---@param chat CodeCompanion.Chat
---@param text string
---@param level CodeCompanion.Severity
---@param details CodeCompanion.MessageDetails
function M.remember_away(chat, text, level, details)
  local notice = { text = text, level = level, after = AT_END }
  chat.notices[#chat.notices + 1] = vim.tbl_extend("error", notice, details)
end

---@param chat CodeCompanion.Chat
---@param row integer
---@return integer? mark Mark of the model's header in this row
local function header_at(chat, row)
  local found = row >= 0 and api.nvim_buf_get_extmarks(chat.bufnr, marks.roles, { row, 0 }, { row, 0 }, {})[1]
  return found and chat.roles[found[1]] == "llm" and found[1] or nil
end

---Remove the line of a notice, the blank line below it, and a model's header without other content.
---@param chat CodeCompanion.Chat
---@param notice CodeCompanion.Notice
local function erase(chat, notice)
  local at = notice.mark and api.nvim_buf_get_extmark_by_id(chat.bufnr, marks.decor, notice.mark, { details = true })
  if not at or not at[1] or at[3].end_col == 0 then
    return -- it is not drawn
  end
  local row = at[1]
  local is_last, header = row + 2 == anchors.position(chat, "tail"), header_at(chat, row - 1)
  if header and (is_last or header_at(chat, row + 2)) then
    api.nvim_buf_del_extmark(chat.bufnr, marks.roles, header)
    chat.roles[header] = nil
    chat.header = chat.header and not is_last
    buffer.remove(chat, row - 1, row + 2)
  else
    buffer.remove(chat, row, row + 2)
  end
  if is_last then
    chat.tail_kind = nil
  end
end

---Remove obsolete notices.
---@param chat CodeCompanion.Chat
---@param is_over fun(notice: CodeCompanion.Notice): boolean?
local function take_away(chat, is_over)
  local is_loaded = api.nvim_buf_is_loaded(chat.bufnr)
  chat.notices = vim.tbl_filter(function(notice)
    local over = is_over(notice)
    if over and is_loaded then
      erase(chat, notice)
    end
    return not over
  end, chat.notices)
end

---Remove the notices about a pause.
---@param chat CodeCompanion.Chat
function M.pause_is_over(chat)
  take_away(chat, function(notice)
    return notice.while_paused
  end)
end

---Set the event that makes a just-drawn notice obsolete.
---@param chat CodeCompanion.Chat
---@param text string
---@param what CodeCompanion.NoticeEnd
function M.holds_until(chat, text, what)
  local newest = chat.notices[#chat.notices]
  if newest and newest.text == text then
    newest.holds_until = newest.holds_until or what
  end
end

---Set the event that makes a notice obsolete, as reported by the host.
---@param chat CodeCompanion.Chat
---@param event table notice event
function M.holds_until_told(chat, event)
  local what = event.until_compacted and "compaction" or event.until_restored and "restored"
  if what then
    M.holds_until(chat, event.text, what)
  end
end

---Remove the notices that an event makes obsolete.
---@param chat CodeCompanion.Chat
---@param what CodeCompanion.NoticeEnd
function M.happened(chat, what)
  take_away(chat, function(notice)
    return notice.holds_until == what
  end)
end

---Handle a new question: notices about the previous one are no longer removed by an answer.
---@param chat CodeCompanion.Chat
function M.question_changed(chat)
  for _, notice in ipairs(chat.notices) do
    if notice.holds_until == "answer" then
      notice.holds_until = nil
    end
  end
end

---Remove the read-only notice before the owner of the chat is checked again; the check repeats the notice if it still
---applies.
---@param chat CodeCompanion.Chat
function M.owner_is_asked(chat)
  take_away(chat, function(notice)
    return notice.text == session.READ_ONLY
  end)
end

---Handle the opening of the chat in the host, which repeats the notices that apply.
---@param chat CodeCompanion.Chat
---@param resumed boolean Whether the log of the chat follows
function M.opening(chat, resumed)
  chat.is_opening = resumed or nil
  chat.notices = vim.tbl_filter(function(notice)
    return not (resumed and notice.opening)
  end, chat.notices)
end

---Handle the end of the opening: the log is drawn above notices from the opening.
---@param chat CodeCompanion.Chat
function M.opened(chat)
  if not chat.is_opening then
    return
  end
  chat.is_opening = nil
  for _, notice in ipairs(chat.notices) do
    if notice.opening and notice.after == "" then
      notice.after = key_above(chat)
    end
  end
end

---Return the line about files that wait for trust, or nil if there are none.
---@param event table trust_waits event
---@return string?
function M.waiting_files(event)
  if event.waits ~= "" then
    local waits = require("codecompanion.text.visible_characters").line(event.waits).text
    local key = require("codecompanion.chat.state.configured_keys").keys("trust", "n")[1] or ":CodeCompanion trust"
    return ("Not loaded until trusted: %s · %s to review"):format(waits, key)
  end
end

---Return the text of a notice with the key that explains it, if any.
---@param event CodeCompanion.Event.Notice
---@return string
function M.with_help(event)
  if not event.help then
    return event.text
  end
  local key = require("codecompanion.chat.state.configured_keys").keys("show_original", "n")[1]
  return event.text .. (key and (" · %s explains"):format(key) or (" · :help %s"):format(event.help))
end

---Return the help tag that explains the notice in a row, if any.
---@param chat CodeCompanion.Chat
---@param row integer
---@return string?
function M.help_at(chat, row)
  for _, notice in ipairs(chat.notices) do
    local at = notice.help and notice.mark and api.nvim_buf_get_extmark_by_id(chat.bufnr, marks.decor, notice.mark, {})
    if at and at[1] == row then
      return notice.help
    end
  end
end

---Return the hint that names the key for another reply.
---@return string?
function M.retry_hint()
  local key = require("codecompanion.chat.state.configured_keys").keys("regenerate", "n")[1]
  return key and (" · %s retries"):format(key) or nil
end

---@param notice CodeCompanion.Notice
---@return table entry
local function as_entry(notice)
  return { kind = "note", text = notice.text, severity = notice.level, hint = notice.hint, notice = notice }
end

---Add the notices below a message: first those of other Neovim sessions from the log, then those of this one, in order.
---@param found table[] Modified in place
---@param notes table[]
---@param said CodeCompanion.Notice[]
local function add_notes(found, notes, said)
  local texts = {}
  for _, notice in ipairs(said) do
    texts[notice.text] = true
  end
  for _, note in ipairs(notes) do
    if not texts[note.text] then
      found[#found + 1] = note
    end
  end
  for _, notice in ipairs(said) do
    found[#found + 1] = as_entry(notice)
  end
end

---Return the notices below one of these keys that are not drawn yet.
---@param chat CodeCompanion.Chat
---@param keys string[]
---@return CodeCompanion.Notice[]
local function said_below(chat, keys)
  local found, drawn = {}, chat.restore.noted
  for _, notice in ipairs(chat.notices) do
    if vim.list_contains(keys, notice.after) and not drawn[notice] then
      drawn[notice] = true
      found[#found + 1] = notice
    end
  end
  return found
end

---Return the newest entry of the conversation.
---@param entries table[]
---@return table? entry
local function newest_of(entries)
  for index = #entries, 1, -1 do
    if not (entries[index].notice or {}).is_aside then
      return entries[index]
    end
  end
end

---Insert the notices into the entries of a piece of the log.
---@param chat CodeCompanion.Chat
---@param event table restored event
---@return table[] entries
function M.merge(chat, event)
  local found, notes, current, drawn = {}, {}, nil, chat.restore.noted
  local said = event.last and said_below(chat, { "" }) or {}
  for _, entry in ipairs(event.entries) do
    local keys = keys_of(entry)
    if entry.kind == "note" then
      notes[#notes + 1] = entry
    else
      if keys[1] and keys[1] ~= current then
        add_notes(found, notes, said)
        current, notes, said = keys[1], {}, said_below(chat, keys)
      end
      found[#found + 1] = entry
    end
  end
  add_notes(found, notes, said)
  if event.first then
    for _, notice in ipairs(said_below(chat, { AT_END })) do
      notice.after = current or ""
      found[#found + 1] = as_entry(notice)
    end
  end
  local newest = event.first and newest_of(found) or nil
  if newest and newest.kind == "note" and newest.ended and not newest.notice then
    -- how the newest turn ended: removed when the same question is answered
    local level = newest.severity or severity[newest.level] or severity.INFO
    newest.notice = { text = newest.text or "", level = level, after = current or "", holds_until = "answer" }
    chat.notices[#chat.notices + 1] = newest.notice
    drawn[newest.notice] = true
  end
  for _, entry in ipairs(found) do
    if entry ~= newest or chat.state ~= "idle" then
      entry.hint = nil
    elseif entry.kind == "note" and vim.list_contains({ "failed", "stopped", "interrupted" }, entry.ended) then
      entry.hint = M.retry_hint()
    end
  end
  return found
end

return M
