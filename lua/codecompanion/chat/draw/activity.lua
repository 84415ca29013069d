---Draws the two lines of virtual text at the input: the current activity and the context usage.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local buffer = require("codecompanion.chat.buffer.chat_text")
local fit = require("codecompanion.text.fit")
local installing = require("codecompanion.chat.state.install_status")
local keys = require("codecompanion.chat.state.configured_keys")
local marks = require("codecompanion.chat.buffer.row_marks")
local options = require("codecompanion.chat.state.chat_options")
local questions = require("codecompanion.chat.state.questions")
local shown = require("codecompanion.chat.buffer.shown")
local status = require("codecompanion.chat.state.chat_status")

local M = {}

local ACTIVITY, METER = 1, 2

---Return the keys that stop the current activity.
---@param chat CodeCompanion.Chat
---@return string
local function stop_hint(chat)
  if #questions.waiting(chat) > 0 then
    local there = keys.keys("next_approval", "n")[1]
    return there and (" · %s goes there"):format(there) or ""
  end
  if installing.waits(chat) then
    return "" -- nothing of the chat is running yet
  end
  local compacting = chat.compaction ~= nil or chat.state == "compacting"
  local key = keys.keys("stop", "n")[1]
  return key and (" · %s to %s"):format(key, compacting and "cancel" or "stop") or ""
end

---Return whether every window of this tab page that shows the chat shows the whole block of a question.
---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@return boolean
local function is_block_visible(chat, approval)
  local first, last = marks.item_rows(chat, approval.item or {})
  local wins = shown.visible(chat)
  return first ~= nil
    and #wins > 0
    and vim.iter(wins):all(function(win)
      return first + 1 >= vim.fn.line("w0", win) and last <= vim.fn.line("w$", win)
    end)
end

---Return the current activity for the line at the input, without repeating what a bar or a block on the screen shows.
---@param chat CodeCompanion.Chat
---@param room integer
---@return string text "" for none
---@return string hint
local function activity_line(chat, room)
  local waiting, hint = questions.waiting(chat), stop_hint(chat)
  local is_asked_above = waiting[1] ~= nil and waiting[1].event.kind == "call" -- the block of the call describes it
  if shown.shows_meter(chat) and is_asked_above then
    local is_found = #waiting == 1 and is_block_visible(chat, waiting[1])
    local key = not is_found and keys.keys("next_approval", "n")[1]
    return key and key .. " goes to the approval" or "", ""
  elseif shown.shows_meter(chat) and installing.waits(chat) then
    return "", "" -- the bar shows the progress, the message that it is sent when ready
  elseif shown.shows_meter(chat) and chat.state == "preparing" and vim.startswith(chat.label, "starting ") then
    return (hint:gsub("^ · ", "")), ""
  end
  local full, brief = status.activity(chat, is_asked_above), status.activity(chat, true)
  local without_remedy = full:gsub(", start it with: [^·]+", " ")
  local ways = { full, without_remedy, brief, unpack(status.shorter(brief)) }
  for _, text in ipairs(ways) do
    if api.nvim_strwidth("⋯ " .. text .. hint) <= room then
      return text, hint
    end
  end
  return brief, hint
end

---Draw both lines; the activity uses the blank line above the input header, so nothing moves.
---@param chat CodeCompanion.Chat
function M.draw(chat)
  if not api.nvim_buf_is_loaded(chat.bufnr) then
    return
  end
  local header = anchors.position(chat, "header")
  local room = fit.narrowest(chat)
  local text, hint = activity_line(chat, room)
  if text ~= "" and header > 0 then
    -- the stop hint is always visible
    text = fit.cut_words("⋯ " .. text, math.max(room - api.nvim_strwidth(hint), 10))
    api.nvim_buf_set_extmark(chat.bufnr, status.ns, header - 1, 0, {
      id = ACTIVITY,
      virt_text = { { text, "CodeCompanionActivity" }, { hint, "CodeCompanionHint" } },
      virt_text_pos = "overlay",
      virt_lines = { { { "", "CodeCompanionActivity" } } }, -- replaces the blank line that the text covers
      hl_mode = "combine",
    })
  else
    api.nvim_buf_del_extmark(chat.bufnr, status.ns, ACTIVITY)
  end
  room = room - api.nvim_strwidth(buffer.input_header()) - 2
  local chunks, yolo = {}, { "YOLO", "CodeCompanionWarning" }
  if options.display().show_meter and not shown.shows_meter(chat) then
    chunks = vim.list_slice(status.meter_chunks(chat, room - (chat.yolo and 7 or 0)))
  end
  if chat.yolo then
    table.insert(chunks, 1, #chunks > 0 and { "YOLO   ", yolo[2] } or yolo)
  end
  api.nvim_buf_set_extmark(chat.bufnr, status.ns, header, 0, {
    id = METER,
    end_col = #buffer.input_header(),
    hl_group = "CodeCompanionHeaderUser",
    line_hl_group = "CodeCompanionHeaderLine",
    strict = false,
    virt_text = #chunks > 0 and chunks or nil,
    virt_text_pos = #chunks > 0 and "right_align" or nil,
    hl_mode = "combine",
  })
end

---Milliseconds without a check after which a starting server counts as having accepted the request; checks run every
---second.
local LOOK_MISSED_MS = 2000

---Show a countdown to a retry, or the seconds spent waiting for a server.
---@param chat CodeCompanion.Chat
---@param event table retrying event
function M.retry(chat, event)
  local due = vim.uv.now() + event.wait_ms
  local waiting = (event.waiting or "") ~= "" and event.waiting or nil
  if waiting and chat.retry and chat.retry.reason == waiting then
    chat.retry.due = due
    return
  end
  M.stop_retry(chat)
  local timer = assert(vim.uv.new_timer())
  local reason = event.brief ~= "" and event.brief or event.reason
  if waiting then
    chat.retry = { reason = waiting, brief = reason, since = vim.uv.now(), due = due, timer = timer }
  else
    chat.retry = { reason = reason, due = due, timer = timer }
  end
  timer:start(
    1000,
    1000,
    vim.schedule_wrap(function()
      if chat.retry and chat.retry.timer == timer then
        if chat.retry.since and vim.uv.now() - chat.retry.due > LOOK_MISSED_MS then
          M.stop_retry(chat)
        end
        status.publish(chat)
        M.draw(chat)
      end
    end)
  )
end

---@param chat CodeCompanion.Chat
local function stop_wait(chat)
  if chat.wait then
    chat.wait.timer:stop()
    chat.wait.timer:close()
    chat.wait = nil
  end
end

---Show how many seconds a wait has lasted: a long prompt, silent reasoning or a summary may take minutes. For a
---streaming reply, the wait counts from its last chunk; while text arrives, a tick only compares two numbers.
---@param chat CodeCompanion.Chat
function M.count_wait(chat)
  local flows = status.flows(chat)
  local on = flows and "flows" or chat.state .. " " .. chat.label
  if chat.wait and chat.wait.on == on then
    return M.heard(chat)
  end
  stop_wait(chat)
  if not flows and not status.waits(chat) then
    return
  end
  local timer = assert(vim.uv.new_timer())
  chat.wait = { since = vim.uv.now(), timer = timer, on = on, shown = "" }
  timer:start(
    1000,
    1000,
    vim.schedule_wrap(function()
      if not chat.wait or chat.wait.timer ~= timer then
        return
      end
      if status.flows(chat) ~= flows or not (flows or status.waits(chat)) or not api.nvim_buf_is_loaded(chat.bufnr) then
        return stop_wait(chat)
      end
      local text = status.waited(chat)
      if text ~= chat.wait.shown then
        chat.wait.shown = text
        status.publish(chat)
        M.draw(chat)
      end
    end)
  )
end

---Record that a chunk of the reply has arrived.
---@param chat CodeCompanion.Chat
function M.heard(chat)
  if chat.wait and chat.wait.on == "flows" then
    chat.wait.since = vim.uv.now()
  end
end

---Stop all timers.
---@param chat CodeCompanion.Chat
function M.stop(chat)
  stop_wait(chat)
  M.stop_retry(chat)
end

---@param chat CodeCompanion.Chat
function M.stop_retry(chat)
  if chat.retry then
    chat.retry.timer:stop()
    chat.retry.timer:close()
    chat.retry = nil
  end
end

return M
