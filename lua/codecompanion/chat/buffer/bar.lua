---Builds the bar of a chat window: `fix the slice · gpt-4.1 · 4 %`. While work is running, the state replaces the
---title; from 50 % the thresholds are appended.
---
---`smart → qwen3-8b`: the server answered with another model; a narrow window names only that model. `no tools` follows
---the model if its server does not support tools. A narrow window first shortens the title, then drops the thresholds,
---the size of an assumed window, the title, `no tools` and the model, in this order, and then uses a shorter
---wording of the state. The state, the percentage, and the notes that compaction is paused or the policy has stopped
---are always shown.

local api = vim.api
local fit = require("codecompanion.text.fit")
local numbers = require("codecompanion.text.numbers")
local registry = require("codecompanion.chat.state.open_chats")
local short_model = require("codecompanion.text.short_model")
local status = require("codecompanion.chat.state.chat_status")

local M = {}

---Minimum and maximum useful widths in cells.
local MIN_TITLE, MIN_NAME, MIN_STATE, MAX_TITLE = 8, 8, 8, 50
local BETWEEN = " · "
---Highlight group of a policy that is stopped by an invalid option.
local STOPPED = "CodeCompanionMeterFull"
---Cells needed beside the text: one at each edge; a status line also shows the position in the buffer.
local BESIDE, BESIDE_PLACE, PLACE = 2, 7, "  %P "

---@param text string
---@return string
local function escaped(text)
  return (text:gsub("%%", "%%%%"))
end

---Highlight groups of the percentage in a status line or winbar; none below 80 %.
local IN_STATUSLINE = {
  CodeCompanionMeterHigh = "CodeCompanionStatusHigh",
  CodeCompanionMeterFull = "CodeCompanionStatusFull",
}
local IN_WINBAR = {
  CodeCompanionMeterHigh = "CodeCompanionMeterHigh",
  CodeCompanionMeterFull = "CodeCompanionMeterFull",
}

---@param chunks { [1]: string, [2]: string }[]
---@param in_winbar boolean
---@return string
local function as_line(chunks, in_winbar)
  return table.concat(vim.tbl_map(function(chunk)
    local group = (in_winbar and IN_WINBAR or IN_STATUSLINE)[chunk[2]]
    return group and ("%%#%s#%s%%*"):format(group, escaped(chunk[1])) or escaped(chunk[1])
  end, chunks))
end

---@class CodeCompanion.BarPart
---@field [1] string
---@field [2]? string Highlight group
---@field min? integer Minimum width when shortened; nil: it is not shortened
---@field by_words? boolean It is shortened at word boundaries

---@param text string
---@param min? integer
---@param group? string
---@return CodeCompanion.BarPart
local function part(text, min, group)
  return { text, group or "", min = min and math.min(min, api.nvim_strwidth(text)) or nil }
end

---Arrange the parts in a width; the flexible part takes the remaining cells. Return nil if they do not fit.
---@param parts CodeCompanion.BarPart[] Parts without text are omitted
---@param width integer
---@return { [1]: string, [2]: string }[]?
local function arranged(parts, width)
  local shown, left, flexible = {}, width, nil
  for _, one in ipairs(parts) do
    if one[1] ~= "" then
      left = left - (#shown > 0 and api.nvim_strwidth(BETWEEN) or 0) - (one.min and 0 or api.nvim_strwidth(one[1]))
      shown[#shown + 1] = one
      flexible = one.min and one or flexible
    end
  end
  if left < (flexible and flexible.min or 0) then
    return nil
  end
  local chunks = {}
  for _, one in ipairs(shown) do
    if #chunks > 0 then
      chunks[#chunks + 1] = { BETWEEN, "" }
    end
    local cut = one.by_words and fit.cut_words or fit.cut
    chunks[#chunks + 1] = { one == flexible and cut(one[1], left) or one[1], one[2] }
  end
  return chunks
end

---Return the context usage with one mark of doubt at most: `of ~32k` if the window size is assumed, else `~` if the
---usage is estimated (R-303, R-506).
---@param meter table
---@return string
local function percentage(meter)
  local percent = numbers.percent(meter.ratio)
  if meter.assumed then
    return ("%d %% of ~%s"):format(percent, numbers.short_window(meter.window))
  end
  return ("%s%d %%"):format(meter.exact and "" or "~", percent)
end

---Return the chunks of a bar for this width.
---@param chat CodeCompanion.Chat
---@param width integer
---@return { [1]: string, [2]: string }[]
function M.chunks(chat, width)
  local meter, state = chat.meter, status.activity(chat, true)
  local model = chat.model ~= "" and short_model(chat.model) or chat.adapter ~= "" and chat.adapter or "CodeCompanion"
  local title = vim.trim((chat.title:gsub("%s+", " ")))
  title = (state ~= "" or title == model) and "" or fit.cut_words(title, MAX_TITLE)
  local whole = chat.yolo and part(require("codecompanion.chat.state.yolo").label()) or part("")
  local brief = part(chat.yolo and "YOLO" or "")
  local group = meter and status.meter_group(meter)
  local full = part(meter and percentage(meter) or "", nil, group)
  local limits = part(meter and status.thresholds(meter) or "")
  local paused = meter and meter.paused and part("paused " .. full[1], nil, group) or full
  local brief_full = paused == full and part((full[1]:gsub(" of .*", "")), nil, group) or paused
  local answers = chat.other_model or model
  local both = part(chat.other_model and ("%s → %s"):format(model, answers) or model)
  local named = part(answers)
  if state ~= "" and chat.model == "" and chat.adapter == "" then
    both, named = part(""), part("") -- "CodeCompanion" would read as part of the state
  end
  local toolless = part(meter and meter.no_tools and "no tools" or "")
  local stopped, by = part(""), part("")
  if meter and meter.stopped then
    stopped = part(meter.stopped .. " stopped", nil, STOPPED)
    by = part(("policy %s stopped: %s"):format(meter.stopped, meter.stopped_by), nil, STOPPED)
  end
  local ways
  if state == "" then
    local short = part(title, MIN_TITLE)
    short.by_words = true
    ways = {
      { whole, part(title), by, both, toolless, full, limits },
      { brief, short, by, both, toolless, full, limits },
      { brief, short, stopped, named, toolless, paused },
      { brief, short, stopped, named, paused },
      { brief, short, stopped, named, brief_full },
      { brief, stopped, named, toolless, paused },
      { brief, stopped, named, paused },
      { brief, stopped, part(answers, MIN_NAME), paused },
      { brief, stopped, paused },
      { stopped, paused },
      { paused },
    }
  else
    local happens, shorter = part(state), status.shorter(state)
    local cut = part(shorter[#shorter] or state, MIN_STATE)
    cut.by_words = true
    ways = {
      { whole, happens, by, both, full, limits },
      { brief, happens, by, both, full, limits },
      { brief, happens, stopped, named, paused },
      { brief, happens, stopped, paused },
      { brief, happens, paused },
      { happens, paused },
    }
    for _, wording in ipairs(shorter) do
      ways[#ways + 1] = { part(wording), paused }
    end
    vim.list_extend(ways, { { cut, paused }, { cut, full } })
  end
  for _, way in ipairs(ways) do
    local chunks = arranged(way, width)
    if chunks then
      return chunks
    end
  end
  return fit.cut_chunks({ { full[1], full[2] } }, width)
end

---Return the bar of a window. Neovim requests it on every key press, so it is cached.
---@param win integer
---@param in_winbar boolean Otherwise it is for a status line
---@return string
function M.text(win, in_winbar)
  local chat = registry.by_buffer(api.nvim_win_get_buf(win))
  if not chat then
    return ""
  end
  local width, activity = api.nvim_win_get_width(win), status.activity(chat, true)
  local named = chat.other_model or false
  local of = { width, in_winbar, chat.meter or false, chat.adapter, chat.model, named, chat.yolo, chat.title, activity }
  local made = chat.bar
  for index = 1, made and #of or 0 do
    made = made.of[index] == of[index] and made or nil
    if not made then
      break
    end
  end
  if not made then
    local chunks = M.chunks(chat, width - (in_winbar and BESIDE or BESIDE_PLACE))
    local text = "%< " .. as_line(chunks, in_winbar) .. "%=" .. (in_winbar and " " or PLACE)
    made = { of = of, text = text }
    chat.bar = made
  end
  return made.text
end

---Return the status line of a chat window, if the user has no status line of their own.
---@return string
function M.line()
  return M.text(vim.g.statusline_winid or api.nvim_get_current_win(), false)
end

---Return the bar for the 'winbar' of a chat window, with the colours of the meter.
---@return string
function M.winbar()
  return M.text(vim.g.statusline_winid or api.nvim_get_current_win(), true)
end

return M
