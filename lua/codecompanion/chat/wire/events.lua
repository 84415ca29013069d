---Handles the events of the host, with one function for each; `python/codecompanion/wire/events.py` describes the wire.
---
---The file is long because it is the dispatch table of the wire protocol: one handler per event name.

local activity = require("codecompanion.chat.draw.activity")
local approval = require("codecompanion.chat.question.approval")
local attachments = require("codecompanion.chat.wire.attachments")
local autocmds = require("codecompanion.chat.state.autocmds")
local blocks = require("codecompanion.chat.draw.blocks")
local card = require("codecompanion.chat.draw.card")
local compacted = require("codecompanion.chat.draw.compacted")
local choice = require("codecompanion.adapters.default_adapter")
local context = require("codecompanion.chat.draw.context_block")
local draft = require("codecompanion.chat.wire.draft")
local draw = require("codecompanion.chat.draw.put_blocks")
local ends = require("codecompanion.chat.wire.turn_end")
local input_hint = require("codecompanion.chat.buffer.input_hint")
local keys = require("codecompanion.chat.state.configured_keys")
local marks = require("codecompanion.chat.buffer.row_marks")
local name = require("codecompanion.chat.buffer.buffer_name")
local notices = require("codecompanion.chat.draw.notices")
local outgoing = require("codecompanion.chat.wire.outgoing")
local places = require("codecompanion.chat.buffer.cursor_places")
local redraw = require("codecompanion.chat.wire.redraw_chat")
local restore = require("codecompanion.chat.draw.restore")
local runs = require("codecompanion.chat.draw.fold_removed_messages")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local status = require("codecompanion.chat.state.chat_status")
local stream = require("codecompanion.chat.draw.stream")
local tools = require("codecompanion.chat.draw.tool_blocks")
local turn_line = require("codecompanion.chat.draw.turn_changes_line")
local view = require("codecompanion.chat.buffer.scroll")
local view_marks = require("codecompanion.chat.draw.view_marks")

---@type table<string, fun(chat: CodeCompanion.Chat, event: table)>
local M = {}

---Draw the model's header, once per turn.
---@param chat CodeCompanion.Chat
---@param adapter? string
---@param model? string
local function ensure_header(chat, adapter, model)
  if not chat.header then
    chat.before_header = chat.tail_kind
    draw.append(chat, blocks.header(chat, adapter or chat.adapter, model or chat.model))
    chat.header = true
  end
end

---Announce the adapter chosen for a chat that was opened with its first message, because no empty chat has shown it.
---@param chat CodeCompanion.Chat
local function tell_of_choice(chat)
  local options = require("codecompanion.config").options
  local made = choice.is_automatic(options) and choice.now(options)
  if made and made.is_usable and not made.is_told and made.name == chat.adapter and #chat.outgoing > 0 then
    made.is_told = true
    say.chat(chat, choice.sentence(made, keys.keys("change_adapter", "n")[1]), severity.INFO)
  end
end

function M.chat_opened(chat, event)
  local reattached = chat.known
  -- the input of a read-only chat is not the chat's draft
  local has_draft = reattached and not chat.read_only
  if chat.read_only and reattached and not chat.awaiting then
    places.remember(chat) -- its owner's newer messages must be inserted
    redraw.blank(chat)
    chat.awaiting = "chat_opened"
  end
  local fresh = chat.awaiting ~= nil
  chat.awaiting = nil
  notices.owner_is_asked(chat)
  notices.opening(chat, event.resumed)
  chat.attached, chat.known = "yes", true
  chat.adapter, chat.model, chat.window = event.adapter, event.model, event.window
  chat.other_model = nil
  chat.title, chat.read_only = blocks.plain(event.title or ""), event.read_only
  name.follow(chat)
  input_hint.draw(chat)
  if not event.resumed and not reattached then
    tell_of_choice(chat)
    if not chat.touched and #chat.outgoing == 0 then
      vim.schedule(function() -- the chat does not wait for it
        require("codecompanion.chat.wire.earlier_chat").tell(chat)
      end)
    end
  end
  -- after a crash the buffer is newer than its copy in the log: use neither draft nor entries from there
  chat.ignore_restored = reattached and not fresh
  local stored = draft.take_stored(chat, event, has_draft)
  if stored ~= "" then
    draft.prepend(chat, stored)
    view.cursor_to_input(chat)
  end
  if not reattached then
    autocmds.fire(chat, "ChatOpened", event)
  end
  chat.asked_again, chat.shown = nil, nil
  local sent, back = outgoing.confirm(chat, event.stored or {})
  draft.save(chat) -- text typed while the host was starting
  if sent then
    local kept = "Your message was stored before the Python process ended. /continue lets the model answer it."
    say.chat(chat, kept, severity.INFO)
  end
  if back then
    local unsent = "Not sent: the Python process had ended. Your message is back in the input."
    say.chat(chat, unsent, severity.WARN)
  end
  if event.read_only then
    say.chat(chat, session.READ_ONLY, severity.WARN)
  end
  session.send_secrets(chat)
  session.send_overrides(chat)
end

function M.redrawn(chat)
  redraw.begin(chat)
  draw.touch(chat)
  chat.notices = chat.clearing and {} or chat.notices
  chat.just_cleared, chat.clearing = chat.clearing, nil
end

function M.model_changed(chat, event)
  chat.adapter, chat.model, chat.window = event.adapter, event.model, event.window
  chat.other_model = nil
  chat.header = false
  session.send_overrides(chat)
  input_hint.draw(chat) -- an empty chat shows whether its adapter is usable
end

function M.title_changed(chat, event)
  chat.title = blocks.plain(event.title)
  name.follow(chat)
  vim.schedule(vim.cmd.redrawtabline) -- after the title is published
end

function M.policy_changed(chat, event)
  chat.policy = event.policy
  say.chat(chat, ("Policy %s: %s"):format(event.policy, event.description), severity.INFO)
end

function M.state(chat, event)
  if event.state ~= chat.state then
    activity.stop_retry(chat) -- the retry is over
  end
  chat.state, chat.label = event.state, blocks.plain(event.label or "")
  if chat.state ~= "idle" then
    marks.forget_hint(chat)
  else
    chat.header = false -- a redraw during an undo treated it as a running turn
  end
  activity.count_wait(chat)
  view_marks.show_keys(chat) -- a file change is reverted between turns only
end

function M.queued(chat, event)
  outgoing.queued(chat, event.submit_id)
end

function M.message_sent(chat, event)
  chat.just_cleared, chat.just_detached, chat.newest_edit = nil, nil, nil
  stream.finish(chat)
  chat.header = false
  notices.question_changed(chat)
  outgoing.sent(chat, event)
  autocmds.fire(chat, "ChatSubmitted", event)
end

function M.gathering(chat, event)
  outgoing.gathering(chat, event.submit_id, event.what)
end

function M.file_updated(chat, event)
  require("codecompanion.chat.draw.live_updates").add(chat, event)
end

function M.code_gathered(chat, event)
  tools.gathered(chat, event)
  autocmds.fire(chat, "CodeGathered", event)
end

function M.editor_context_sent(chat, event)
  tools.gathered(chat, event, true)
end

function M.submit_failed(chat, event)
  outgoing.failed(chat, event.submit_id, event.text)
  local level = chat.state == "cancelling" and severity.INFO or severity.ERROR
  say.chat(chat, event.error, level)
  notices.holds_until(chat, event.error, "input")
  input_hint.draw(chat)
  if view.input_fills_window(chat) then
    say.line({ event.error, "Not sent; see the reason above your message." }, level)
  end
end

function M.reply_started(chat, event)
  activity.stop_retry(chat)
  notices.happened(chat, "reply")
  notices.happened(chat, "answer")
  chat.parts = {}
  ensure_header(chat, event.adapter, event.model)
end

function M.text(chat, event)
  activity.stop_retry(chat)
  activity.heard(chat)
  ensure_header(chat)
  stream.append(chat, "text", event.text)
end

function M.reasoning(chat, event)
  activity.stop_retry(chat)
  activity.heard(chat)
  ensure_header(chat)
  stream.append(chat, "reasoning", event.text)
end

function M.reply_finished(chat, event)
  stream.finish(chat)
  for _, part in ipairs(chat.parts) do
    local first, last = marks.item_rows(chat, part)
    if first then
      part.message_id, part.reasoning = event.message_id, part.kind == "reasoning" or nil
      marks.set_item(chat, first, last, part)
      if event.stop == "cut" and part.kind == "text" then
        draw.cut_off(chat, last - 1)
      end
    end
  end
  chat.parts = {}
  chat.other_model = event.other_model and blocks.one_line(event.other_model)
  -- reported at the end of the turn, unless the user stopped it; the host reports an output limit or a filter
  chat.cut = event.stop == "cut"
end

function M.tool_started(chat, event)
  stream.finish(chat)
  ensure_header(chat)
  tools.started(chat, event)
  autocmds.fire(chat, "ToolStarted", event)
end

function M.tool_finished(chat, event)
  stream.finish(chat)
  ensure_header(chat)
  tools.finished(chat, event)
  turn_line.take(chat, event)
  autocmds.fire(chat, "ToolFinished", event)
end

function M.changes_reverted(chat, event)
  tools.reverted(chat, event.change_ids, event.unsaved_ids or {})
  turn_line.reverted(chat, event.change_ids)
  view_marks.show_keys(chat)
end

function M.approval_requested(chat, event)
  stream.finish(chat)
  approval.requested(chat, event)
end

function M.approval_closed(chat, event)
  approval.closed(chat, event.call_id)
  autocmds.fire(chat, "ApprovalAnswered", event)
end

function M.meter(chat, event)
  chat.meter = {
    tokens = event.tokens,
    window = event.window,
    ratio = event.ratio,
    exact = event.exact,
    assumed = event.assumed,
    edit_at = event.edit_at,
    compact_at = event.compact_at,
    paused = event.paused,
    stopped = event.stopped,
    stopped_by = event.stopped_by,
    no_tools = event.no_tools,
    held_back = event.held_back,
  }
  if not event.paused then
    notices.pause_is_over(chat)
  end
end

function M.context_items(chat, event)
  context.set(chat, event.items)
end

function M.context_edited(chat, event)
  stream.finish(chat)
  if not chat.changes[event.change_id] then
    draw.append(chat, card.edited(event))
  end
  card.made(chat, event.change_id)
  tools.cleared(chat, event.changed or {}, event.call_ids, event.cut or {})
  view_marks.show_keys(chat)
  runs.take_out(chat, event.removed or {}, "edited")
  autocmds.fire(chat, "ChatEdited", event)
end

function M.view_marks(chat, event)
  chat.undo_kind = event.undo_kind
  attachments.undo_changed(chat, event.next_undo)
  view_marks.update(chat, event)
end

function M.compaction_started(chat, event)
  stream.finish(chat)
  chat.compaction = event
  autocmds.fire(chat, "ChatCompacting", event)
end

function M.compacted(chat, event)
  stream.finish(chat)
  chat.compaction, chat.warning_level = nil, nil
  notices.happened(chat, "compaction")
  compacted.show(chat, event)
  card.made(chat, event.compaction_id)
  autocmds.fire(chat, "ChatCompacted", event)
end

function M.compaction_failed(chat, event)
  chat.compaction = nil
  notices.happened(chat, "compaction") -- only the newest failure is shown
  say.chat(chat, event.reason, event.cancelled and severity.INFO or severity.WARN)
  notices.holds_until(chat, event.reason, "compaction")
  autocmds.fire(chat, "ChatCompactFailed", event)
end

---Show a new fill level of the context window once; the policy defines the levels. The buffer shows the resulting
---actions.
---@param chat CodeCompanion.Chat
---@param fields table
local function warn_of_window(chat, fields)
  local level = fields.warningLevel
  if level ~= chat.warning_level then
    chat.warning_level = level
    local function percent(tokens)
      return fields.budgetTokens > 0 and math.floor(tokens / fields.budgetTokens * 100) or 0
    end
    local before, sent = percent(fields.usageTokens), percent(fields.sentTokens or fields.usageTokens)
    if not fields.compacted or sent >= before then
      say.line(("The context window is %d %% full (%s)"):format(before, level), severity.WARN)
    end
  end
end

function M.policy_event(chat, event)
  if event.name == "context_window_status" then
    warn_of_window(chat, event.fields)
  end
  autocmds.fire_policy(chat, event)
end

function M.retrying(chat, event)
  activity.retry(chat, event)
end

M.turn_finished = ends.turn_finished

function M.restored(chat, event)
  if not chat.ignore_restored then
    restore.piece(chat, event)
    draw.touch(chat)
  end
  if event.first or event.last then
    draft.messages_drawn(chat)
  end
  if event.first then
    notices.opened(chat)
    local when_drawn = chat.when_drawn
    chat.when_drawn = nil
    if when_drawn then
      when_drawn(chat)
    end
  end
end

function M.request_failed(chat, event)
  if event.gone then
    return -- `host_exit` has reported it
  end
  if event.verb == "open_chat" or event.verb == "submit" then
    local said = event.verb == "submit" and chat.attached == "no" -- the reason why the chat could not be opened
    chat.attached = event.verb == "open_chat" and "no" or chat.attached
    outgoing.recall_all(chat)
    if said then
      return
    end
  end
  if chat.read_only then
    return say.line(session.READ_ONLY_LINES, severity.WARN) -- the buffer also shows it
  end
  if event.busy then
    return say.hint(event.error) -- in the chat, it would stay after the reply
  end
  say.chat(chat, event.error, severity.ERROR)
end

---Show one line about untrusted files in the folder; it disappears when none are left, and never blocks.
function M.trust_waits(chat, event)
  notices.happened(chat, "trust")
  local text = notices.waiting_files(event)
  if text then
    say.chat(chat, text, severity.WARN, { is_aside = true })
    notices.holds_until(chat, text, "trust")
  end
end

function M.notice(chat, event)
  local details = { while_paused = event.while_paused, help = event.help }
  say.chat(chat, notices.with_help(event), severity[event.level], details)
  notices.holds_until_told(chat, event)
end

M.host_exit = ends.host_exit

---Draw the virtual lines and publish the state, once after each batch.
---@param chat CodeCompanion.Chat
function M.after(chat)
  activity.draw(chat)
  view.unskip_folds(chat)
  status.publish(chat)
end

say.draw = function(chat, text, level, details)
  stream.finish(chat)
  local block = blocks.notice(text, level, details.hint)
  block.notice = notices.remember(chat, text, level, details)
  draw.append(chat, block)
end

return M
