---Asks before a compaction, and shows the current size, the expected size and the kept messages (R-533).

local confirm = require("codecompanion.screen.confirm")
local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

---@param chat CodeCompanion.Chat
---@param found? { before: integer, after: integer, pins: integer, rules: integer, why: string }
---@return string
local function question(chat, found)
  local before = found and found.before or (chat.meter and chat.meter.tokens)
  local parts = { chat.state == "idle" and "Compact now?" or "Compact before the next request?" }
  if before then
    local after = not found and "…" or found.after > 0 and "about " .. numbers.short(found.after) or "less"
    parts[1] = ("%s %s → %s"):format(parts[1], numbers.short(before), after)
  end
  local kept = {}
  for _, item in ipairs({ { "pins", "pin" }, { "rules", "rule" } }) do
    local count = found and found[item[1]] or 0
    if count > 0 then
      kept[#kept + 1] = numbers.counted(count, item[2])
    end
  end
  if #kept > 0 then
    parts[2] = "keeps " .. table.concat(kept, ", ")
  end
  return table.concat(parts, " · ")
end

---Ask for confirmation; the figures are filled in when the host has computed them. If nothing would change, do not ask.
---@param chat CodeCompanion.Chat
---@param on_yes fun(go_on: boolean)
---@param on_no fun()
---@param on_nothing fun(why: string, is_possible: boolean)
---@param on_refused fun(reason: string) Called if another Neovim owns the chat
local function ask(chat, on_yes, on_no, on_nothing, on_refused)
  local answers = { { key = "y", label = "yes" }, { key = "n", label = "no" } }
  if chat.state == "idle" then
    table.insert(answers, 2, { key = "c", label = "yes, then continue" })
  end
  local is_needless = false
  local asked = confirm.ask(question(chat), answers, function(key)
    if is_needless then
      return
    elseif key == "y" or key == "c" then
      on_yes(key == "c")
    else
      on_no()
    end
  end)
  session.request(chat, "forecast_compaction", vim.empty_dict(), function(found)
    if found.why ~= "" and asked.is_open() then
      is_needless = true
      asked.close()
      return on_nothing(found.why, found.after > 0)
    end
    asked.say(question(chat, found))
  end, function(reason)
    if chat.read_only and asked.is_open() then
      is_needless = true
      asked.close()
      on_refused(reason)
    end
  end)
end

---Summarise the conversation; ask first unless `force` is set.
---@param chat CodeCompanion.Chat
---@param instructions string
---@param force? boolean Do not ask
---@param refuse? fun(reason: string) Called if the answer is No: the text stays in the input
function M.compact(chat, instructions, force, refuse)
  local function go(go_on)
    session.notify(chat, "compact", { instructions = instructions, go_on = go_on })
  end
  if force then
    return go(false)
  end
  ask(chat, function(go_on)
    go(go_on)
  end, function()
    if refuse and instructions ~= "" then
      refuse("Not compacted; your text is back in the input.")
    end
  end, function(why, is_possible)
    if refuse and instructions ~= "" and chat.state == "idle" then
      return refuse(("Nothing to compact: %s. Your text is back in the input."):format(why))
    elseif is_possible then
      return say.line(("Nothing to compact: %s."):format(why))
    end
    go(false) -- the host reports it; or the request is queued, and the situation may change until then
  end, refuse or function(reason)
    say.line(reason, severity.WARN)
  end)
end

return M
