---Describes the status of a chat: state, meter, numbers. Used by the buffer, the winbar and status lines.

local api = vim.api
local fit = require("codecompanion.text.fit")
local installing = require("codecompanion.chat.state.install_status")
local numbers = require("codecompanion.text.numbers")
local questions = require("codecompanion.chat.state.questions")

local M = {}

---The host's label before the first output of the model (`session/turn/turn.py`).
M.WAITING = "waiting for the model"
local SHOWN_WAIT_S = 3

M.ns = api.nvim_create_namespace("codecompanion.chat.status")

local HIGH, FULL = 0.80, 0.95
local SHOWS_THRESHOLDS = 0.50
local CELLS = 10

---Return a bar of ten cells between two edges: a full cell for every 10 %, half a cell from 5 % (R-303). The rest is
---shaded, so that a nearly empty bar is recognisable on any background.
---@param ratio number 0..1, larger values are shown as full
---@return string
function M.gauge(ratio)
  local halves = math.floor(math.max(0, math.min(ratio, 1)) * CELLS * 2 + 1e-9)
  local bar = ("█"):rep(math.floor(halves / 2)) .. (halves % 2 == 1 and "▌" or "")
  return "▕" .. bar .. ("░"):rep(CELLS - math.ceil(halves / 2)) .. "▏"
end

---Return `ctx 35.8k/40.0k 89%`, or `ctx~ …` if the count is not exact (R-303); `…/~32.0k …` if the context window is
---unknown (R-506).
---@param meter table The last `meter` event
---@return string
function M.meter_text(meter)
  local label = meter.exact and "ctx" or "ctx~"
  local window = (meter.assumed and "~" or "") .. numbers.short(meter.window)
  return ("%s %s/%s %d%%"):format(label, numbers.short(meter.tokens), window, numbers.percent(meter.ratio))
end

---Return an explanation of the meter's signs, for the command line.
---@param meter table
---@return string?
function M.explained(meter)
  local parts = {}
  if not meter.exact then
    parts[1] = "~ is an estimate"
  end
  if meter.assumed then
    local window = numbers.short_window(meter.window)
    parts[#parts + 1] = ("~%s is an assumed window (:help codecompanion-windows)"):format(window)
  end
  return #parts > 0 and table.concat(parts, ", ") or nil
end

---@param meter table
---@return string group
function M.meter_group(meter)
  if meter.ratio >= FULL then
    return "CodeCompanionMeterFull"
  end
  return meter.ratio >= HIGH and "CodeCompanionMeterHigh" or "CodeCompanionMeter"
end

---Return the thresholds of editing and compaction, once the window is half full.
---@param meter table
---@return string
function M.thresholds(meter)
  if meter.paused then
    return "compaction paused"
  elseif meter.ratio < SHOWS_THRESHOLDS then
    return ""
  end
  local parts = {}
  for _, at in ipairs({ { "edit", meter.edit_at or 0 }, { "compact", meter.compact_at or 0 } }) do
    if at[2] > 0 and meter.window > 0 then
      parts[#parts + 1] = ("%s %d %%"):format(at[1], math.floor(at[2] / meter.window * 100 + 0.5))
    end
  end
  return table.concat(parts, " · ")
end

---Return the variants of the meter, longest first. The bar, which repeats the percentage, is dropped first, then the
---marks; the pause and the percentage are kept longest.
---@param chat CodeCompanion.Chat
---@return { [1]: string, [2]: string }[][] ways, integer core Index of the shortest variant with the token count
function M.meter_ways(chat)
  local meter = chat.meter
  if not meter then
    return { {} }, 1
  end
  local group, marks = M.meter_group(meter), M.thresholds(meter)
  local text, bar = { M.meter_text(meter), group }, { " " .. M.gauge(meter.ratio), group }
  local percent = { numbers.percent(meter.ratio) .. "%", group }
  local ways = { { text, bar }, { text }, { percent } }
  if meter.stopped then
    local stopped = { meter.stopped .. " stopped   ", "CodeCompanionMeterFull" }
    return { { stopped, text, bar }, { stopped, text }, { stopped, percent }, { percent } }, 2
  elseif meter.paused then
    local mark, short = { marks .. "   ", "CodeCompanionMeter" }, { "paused ", "CodeCompanionMeter" }
    ways = { { mark, text, bar }, { mark, text }, { short, text }, { short, percent }, { percent } }
    return ways, 3
  elseif marks ~= "" then
    local mark = { marks .. "   ", "CodeCompanionMeter" }
    table.insert(ways, 1, { mark, text })
    table.insert(ways, 1, { mark, text, bar })
  end
  return ways, #ways - 1
end

---Return the first of several variants that fits, or nil.
---@param ways { [1]: string, [2]: string }[][]
---@param room integer Available cells
---@return { [1]: string, [2]: string }[]?
function M.fitting(ways, room)
  for _, way in ipairs(ways) do
    if fit.width(way) <= room then
      return way
    end
  end
end

---Return the longest variant of the meter that fits.
---@param chat CodeCompanion.Chat
---@param room integer Available cells
---@return { [1]: string, [2]: string }[] chunks Empty if not even the percentage fits
function M.meter_chunks(chat, room)
  return M.fitting(M.meter_ways(chat), room) or {}
end

---Return whether the chat has running or waiting work that stopping or closing it would end.
---@param chat CodeCompanion.Chat
---@return boolean
function M.is_busy(chat)
  return chat.state ~= "idle" or chat.compaction ~= nil or chat.retry ~= nil or #chat.outgoing > 0
end

---Return whether the chat waits for something of unknown duration: a first token, a summary.
---@param chat CodeCompanion.Chat
---@return boolean
function M.waits(chat)
  local is_read = chat.label:find("^reading .+ tokens$") ~= nil -- a local server is processing a prompt
  return chat.label == M.WAITING or is_read or chat.state == "compacting" or chat.state == "preparing"
end

---The host's labels while text streams; arguments of a call arrive only as a whole.
local FLOWING = { streaming = true, thinking = true }

---Return whether the text of a reply is streaming; such a stream may stall.
---@param chat CodeCompanion.Chat
---@return boolean
function M.flows(chat)
  return chat.state == "streaming" and FLOWING[chat.label] == true
end

---Return how long the chat has waited or a reply has stalled; "" for the first seconds.
---@param chat CodeCompanion.Chat
---@return string
function M.waited(chat)
  local counts = chat.wait ~= nil and (M.waits(chat) or M.flows(chat))
  local seconds = counts and math.floor((vim.uv.now() - chat.wait.since) / 1000) or 0
  if seconds < SHOWN_WAIT_S then
    return ""
  end
  local minutes = math.floor(seconds / 60)
  local time = minutes > 0 and ("%d min %d s"):format(minutes, seconds % 60) or ("%d s"):format(seconds)
  return (M.flows(chat) and " · nothing for %s" or " · %s"):format(time)
end

---Return the current activity of the chat, or "" if it is idle.
---@param chat CodeCompanion.Chat
---@param brief? boolean Without the reason, for bars that are cut at the front
---@return string
function M.activity(chat, brief)
  local waiting = questions.waiting(chat)
  if chat.retry and chat.retry.since then
    local seconds = math.floor((vim.uv.now() - chat.retry.since) / 1000)
    local what = brief and chat.retry.brief or chat.retry.reason
    return seconds > 0 and ("%s · %d s"):format(what, seconds) or what
  elseif chat.retry then
    local left = math.ceil((chat.retry.due - vim.uv.now()) / 1000)
    local again = left > 0 and ("trying again in %d s"):format(left) or "trying again"
    return brief and again or ("%s · %s"):format(chat.retry.reason, again)
  elseif #waiting > 0 then
    local event = waiting[1].event
    local title, kind = event.title, require("codecompanion.chat.state.question_kinds")[event.kind]
    if kind then
      return kind.waiting[brief and 2 or 1]
    end
    local what = not brief and title ~= "" and require("codecompanion.text.visible_characters").line(title).text
    return what and ("waiting for your approval: %s"):format(what) or "waiting for your approval"
  elseif chat.compaction then
    local label = chat.compaction.label
    return (label and label ~= "" and label or "compacting the chat") .. M.waited(chat)
  elseif chat.label ~= "" then
    return chat.label .. M.waited(chat)
  elseif installing.waits(chat) then
    return installing.text(brief)
  end
  return chat.state == "idle" and "" or chat.state:gsub("_", " ") .. M.waited(chat)
end

---Shorter wordings of activities for narrow windows, longest first.
---@type { [1]: string, [2]: string[] }[]
local SHORTER = {
  { "^waiting for your approval.*$", { "waiting for approval", "approve?" } },
  { "^waiting: ([^:?]+)%??$", { "%1?" } },
  { "^waiting for the model(.*)$", { "waiting%1", "waiting" } },
  { "^compacting the chat(.*)$", { "compacting%1", "compacting" } },
  { "^(running %S+) .+$", { "%1", "running" } },
  { "^reading about (%S+ tokens).*$", { "reading %1", "reading" } },
  { "^starting .+$", { "starting MCP", "starting" } },
  { "^trying again in (.+)$", { "retry in %1", "retrying" } },
  {
    "^(.*nstalling) packages([^:]*)(: .*)( · %d+ s)$",
    { "%1%2%3%4", "Installing packages%2%4", "Installing%2%4", "Installing%4", "Installing" },
  },
  { "^(Updating) packages(: .*)( · %d+ s)$", { "%1%2%3", "%1 packages%3", "%1%3", "%1" } },
  { "^(.+) · nothing for .+$", { "%1" } },
  { "^(%a+ing)%f[%A].+$", { "%1" } },
}

---Return shorter wordings of an activity, longest first, none of which ends in `…`.
---@param activity string
---@return string[]
function M.shorter(activity)
  for _, one in ipairs(SHORTER) do
    if activity:find(one[1]) then
      return vim.tbl_map(function(wording)
        return (activity:gsub(one[1], wording))
      end, one[2])
    end
  end
  return {}
end

---Return an item for 'statusline', with `%` doubled: `streaming · ctx 35.8k/128k 28%%`.
---@param bufnr? integer Chat buffer, by default the current one
---@return string
function M.component(bufnr)
  local shown = vim.b[bufnr or api.nvim_get_current_buf()].codecompanion_chat
  local parts = { questions.elsewhere(bufnr) }
  parts[#parts + 1] = shown and shown.text ~= "" and shown.text or nil
  return (table.concat(parts, " · "):gsub("%%", "%%%%"))
end

---Publish the state in `vim.b.codecompanion_chat` and redraw status lines.
---@param chat CodeCompanion.Chat
function M.publish(chat)
  local activity = M.activity(chat, true)
  local parts = {}
  if activity ~= "" then
    parts[1] = activity
  end
  if chat.meter then
    parts[#parts + 1] = M.meter_text(chat.meter)
  end
  vim.b[chat.bufnr].codecompanion_chat = {
    id = chat.id,
    title = chat.title,
    adapter = chat.adapter,
    model = chat.model,
    state = chat.state,
    label = activity,
    yolo = chat.yolo or false,
    meter = chat.meter or vim.empty_dict(),
    text = table.concat(parts, " · "),
  }
  vim.cmd.redrawstatus({ bang = true })
end

return M
