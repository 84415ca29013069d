---The bar of a chat window: title, model and what happens on the left, how full the context is on the right.
---
---What gives way first where there is not enough room: the title, shortened and then whole, the bar of the meter, the
---marks of editing and compaction, what asks in spite of YOLO, the model. What happens, that compaction is paused and
---the percentage stay; that it is YOLO as long as there is room: the header of the input says it, too.

local api = vim.api
local fit = require("codecompanion.screen.fit")
local registry = require("codecompanion.chat.state.registry")
local status = require("codecompanion.chat.state.status")

local M = {}

local MIN_NAME, MIN_TITLE, MAX_TITLE = 8, 16, 50
---Cells beside the two halves: a blank at the edge and two between them; a status line also has the place in the text.
local BESIDE, BESIDE_PLACE, PLACE = 4, 9, "  %P "

---@param text string
---@return string
local function escaped(text)
  return (text:gsub("%%", "%%%%"))
end

---The groups of the meter where the background is that of a status line; none below 80 %.
local IN_STATUSLINE = {
  CodeCompanionMeterHigh = "CodeCompanionStatusHigh",
  CodeCompanionMeterFull = "CodeCompanionStatusFull",
}

---@param chunks { [1]: string, [2]: string }[]
---@param in_winbar boolean
---@return string
local function as_line(chunks, in_winbar)
  return table.concat(vim.tbl_map(function(chunk)
    local group = in_winbar and chunk[2] or IN_STATUSLINE[chunk[2]]
    return group and ("%%#%s#%s%%*"):format(group, escaped(chunk[1])) or escaped(chunk[1])
  end, chunks))
end

---@param ... string
---@return string
local function joined(...)
  return table.concat(
    vim.tbl_filter(function(part)
      return part ~= ""
    end, { ... }),
    "  "
  )
end

---The two halves of a bar of so many cells.
---@param chat CodeCompanion.Chat
---@param width integer
---@return string left
---@return { [1]: string, [2]: string }[] right
function M.halves(chat, width)
  local ways, core = status.meter_ways(chat)
  local name = chat.adapter ~= "" and chat.adapter .. (chat.model ~= "" and " · " .. chat.model or "")
    or "CodeCompanion"
  local room, activity = width - fit.width(ways[core]), status.activity(chat, true)
  local happens = activity
  if chat.yolo then
    local whole = joined(require("codecompanion.chat.state.yolo").label(), activity)
    local brief = joined("YOLO", activity)
    local fits_whole = api.nvim_strwidth(joined(name, whole)) <= room
    local fits_brief = activity == "" or api.nvim_strwidth(brief) <= room
    happens = fits_whole and whole or fits_brief and brief or activity
  end
  if api.nvim_strwidth(joined(name, happens)) > room then
    -- rather no name than a stump
    name = happens == "" and room >= MIN_NAME and fit.cut(name, room) or ""
  end
  local left = fit.cut(joined(name, happens), math.max(width - fit.width(ways[#ways]), 1))
  local right = status.fitting(ways, width - api.nvim_strwidth(left)) or ways[#ways]
  local title = vim.trim((chat.title:gsub("%s+", " ")))
  local spare = width - api.nvim_strwidth(left .. " · ") - fit.width(right)
  if title ~= "" and name ~= "" and right == ways[1] and spare >= MIN_TITLE then
    left = fit.cut(title, math.min(spare, MAX_TITLE)) .. " · " .. left
  end
  return left, right
end

---The bar of a window. Neovim asks with every key that is typed: what is made of the same is not made again.
---@param win integer
---@param in_winbar boolean Otherwise it is a status line
---@return string
function M.text(win, in_winbar)
  local chat = registry.by_buffer(api.nvim_win_get_buf(win))
  if not chat then
    return ""
  end
  local width, activity = api.nvim_win_get_width(win), status.activity(chat, true)
  local of = { width, in_winbar, chat.meter or false, chat.adapter, chat.model, chat.yolo, chat.title, activity }
  local made = chat.bar
  for index = 1, made and #of or 0 do
    made = made.of[index] == of[index] and made or nil
    if not made then
      break
    end
  end
  if not made then
    local left, right = M.halves(chat, width - (in_winbar and BESIDE or BESIDE_PLACE))
    left = left == "" and "" or " " .. left
    local text = "%<" .. escaped(left) .. "%=  " .. as_line(right, in_winbar) .. (in_winbar and " " or PLACE)
    made = { of = of, text = text }
    chat.bar = made
  end
  return made.text
end

---The status line of a chat window, where the user has none of their own: model, what happens, how full the context is.
---@return string
function M.line()
  return M.text(vim.g.statusline_winid or api.nvim_get_current_win(), false)
end

---The same for the 'winbar' of a chat window, with the colours of the meter.
---@return string
function M.winbar()
  return M.text(vim.g.statusline_winid or api.nvim_get_current_win(), true)
end

return M
