---Controls the flow of ghost text (key → pause → request → response → display) and the effect of a key on a visible
---suggestion. Nothing here blocks.
---
---The file is longer than others because every step reads and changes one state: the current offer and request.

local eligible = require("codecompanion.inline.eligible")
local ghost = require("codecompanion.inline.ghost")
local menus = require("codecompanion.inline.open_menus")
local pace = require("codecompanion.inline.request_pace")
local place_of = require("codecompanion.inline.suggestion_place")
local source = require("codecompanion.inline.source")

local uv = vim.uv or vim.loop

local M = {
  is_manual = false, ---Manual requests only: `:CodeCompanionComplete` works although completion is off
}

local MORE = 3 -- number of suggestions to request when the user wants another one

---@class CodeCompanion.Offer : CodeCompanion.Suggestions
---@field index integer
---@field has_more boolean Whether more suggestions were already requested

---@type CodeCompanion.Offer?
local offer
---@type { cancel: fun(), place: CodeCompanion.Place, is_waiting: boolean? }?
local question
local timer ---@type uv.uv_timer_t?
local typed_tick ---@type integer? `b:changedtick` after the last key that changed text
local on_change = function() end

---@return table `completion` of the options
local function options()
  return require("codecompanion.config").options.completion
end

---Return whether a pause triggers a request.
---@return boolean
local function is_automatic()
  return not M.is_manual and options().trigger == "automatic"
end

local function stop_waiting()
  if timer then
    timer:stop()
  end
  if question then
    question.cancel()
    question = nil
  end
end

---Draw the rest of the suggestion, or hide it if a menu is open.
---@param place CodeCompanion.Place
---@param text string
local function draw(place, text)
  if menus.is_open() then
    ghost.clear()
  else
    ghost.show(place, text)
  end
end

---@return integer
local function tick()
  return vim.api.nvim_buf_get_changedtick(0)
end

---Remove the suggestion and cancel the request.
function M.drop()
  local was_busy = offer ~= nil or question ~= nil
  stop_waiting()
  ghost.clear_hint()
  if offer then
    offer = nil
    ghost.clear()
  end
  if was_busy then
    on_change()
  end
end

---Return the rest of the suggestion at the cursor.
---@return string? rest
---@return CodeCompanion.Place here
function M.rest()
  local here = place_of.here()
  return offer and place_of.rest(offer.items[offer.index], offer.place, here) or nil, here
end

---Return whether a suggestion at the cursor is visible.
---@return boolean
function M.is_shown()
  return offer ~= nil and ghost.is_shown()
end

---Return the index of the visible suggestion and the number of suggestions.
---@return integer? index
---@return integer? count
function M.shown()
  if offer then
    return offer.index, #offer.items
  end
end

---@return boolean
function M.is_asking()
  return question ~= nil and question.is_waiting == true
end

---Retry automatically once a failed server may be asked again, as long as the user stays in Insert mode.
local function wait_for_server()
  local rest_ms = pace.rest_ms()
  if timer and rest_ms > 0 and is_automatic() and not timer:is_active() then
    timer:start(rest_ms, 0, vim.schedule_wrap(M.on_pause))
  end
end

---Show why there is no suggestion at the cursor, until the next key.
---@param why string
function M.hint(why)
  ghost.hint(place_of.here(), why)
end

---Accept a response if it still fits the current text.
---@param suggestions CodeCompanion.Suggestions?
---@param is_manual boolean?
local function on_answer(suggestions, is_manual)
  question = nil
  menus.watch_cmp(M.on_menu)
  local here = place_of.here()
  local items = suggestions and place_of.fitting(suggestions.items, suggestions.place, here) or {}
  if #items > 0 and not eligible.moment_problem() then
    if timer then
      timer:stop()
    end
    offer = { place = here, items = items, index = 1, has_more = false }
    draw(here, items[1])
  end
  on_change()
  local news = source.news()
  if offer then
    ghost.clear_notice()
  elseif is_manual then
    M.hint(source.state().why)
  elseif news then
    ghost.notice(here, news)
  end
  if not offer then
    wait_for_server()
  end
end

---Request suggestions at the cursor, unless the request is already running.
---@param how { manual?: boolean }
function M.ask(how)
  local place = place_of.here()
  if question then
    if not how.manual and vim.deep_equal(question.place, place) then
      return
    end
    question.cancel()
  end
  local asked = { place = place }
  question = asked
  asked.cancel, asked.is_waiting = source.ask({ place = place, manual = how.manual }, function(suggestions)
    if question == asked then
      on_answer(suggestions, how.manual)
    end
  end)
  on_change()
end

---Handle a pause in typing.
function M.on_pause()
  if offer or eligible.moment_problem() then
    return
  end
  M.ask({})
end

local function wait_for_pause()
  timer = timer or uv.new_timer()
  timer:start(pace.pause_ms(options()), 0, vim.schedule_wrap(M.on_pause))
end

---Handle a change of text in Insert mode.
function M.on_text()
  typed_tick = tick()
  pace.key()
  ghost.clear_hint()
  if offer then
    local rest, here = M.rest()
    if rest and rest ~= "" then
      return draw(here, rest)
    end
    offer = nil
    ghost.clear()
    vim.schedule(on_change)
  end
  if is_automatic() then
    wait_for_pause()
  end
end

---Handle a text change while a completion menu is open.
function M.on_text_with_menu()
  typed_tick = tick()
  stop_waiting()
  ghost.clear()
end

---Handle a cursor movement in Insert mode; keys that change text also cause one.
function M.on_move()
  local cursor = vim.api.nvim_win_get_cursor(0)
  ghost.clear_hint(cursor[1] - 1, cursor[2])
  if offer or question then
    if tick() ~= typed_tick then
      return -- on_text follows
    end
    local rest = M.rest()
    if offer and not rest then
      M.drop()
    elseif question and not offer and not place_of.rest("", question.place, place_of.here()) then
      M.drop()
    end
  end
end

---Handle the start of Insert mode.
function M.on_enter()
  typed_tick = tick()
  if is_automatic() then
    wait_for_pause()
  end
end

---Handle a completion menu that opens or closes: a menu and a suggestion are never shown together.
function M.on_menu()
  vim.schedule(function()
    local rest, here = M.rest()
    if rest and rest ~= "" and not eligible.moment_problem() then
      draw(here, rest)
    else
      ghost.clear()
      M.on_enter()
    end
  end)
end

---Show the next or the previous suggestion; request more if there is only one.
---@param step 1|-1
function M.cycle(step)
  local current = offer
  if not current then
    return
  end
  if #current.items == 1 and not current.has_more then
    current.has_more = true
    local here = place_of.here()
    local first = M.rest()
    source.ask({ place = here, manual = true, count = MORE }, function(suggestions)
      if offer ~= current or not suggestions then
        return
      end
      local now = place_of.here()
      local items = place_of.fitting(vim.list_extend({ first }, suggestions.items), here, now)
      if #items > 1 then
        offer = { place = now, items = items, index = 1, has_more = true }
        M.cycle(step)
      end
      on_change()
    end)
    return on_change()
  end
  current.index = (current.index - 1 + step) % #current.items + 1
  local rest, here = M.rest()
  if rest and rest ~= "" then
    draw(here, rest)
  end
  on_change()
end

---Continue after a part of the suggestion was inserted before the cursor: show the rest, or immediately request the
---next suggestion.
---@param left string
function M.on_accepted(left)
  typed_tick = tick()
  stop_waiting()
  offer = nil
  if left ~= "" then
    local here = place_of.here()
    offer = { place = here, items = { left }, index = 1, has_more = true }
    draw(here, left)
  else
    ghost.clear()
    if is_automatic() and not eligible.moment_problem() then
      M.ask({})
    end
  end
  on_change()
end

---@param listener fun() Called when the result of `shown` or `is_asking` changes
function M.listen(listener)
  on_change = listener
end

---Remove the suggestion and the notice, and stop the timer.
function M.close()
  M.drop()
  ghost.clear_notice()
  if timer then
    timer:close()
    timer = nil
  end
end

return M
