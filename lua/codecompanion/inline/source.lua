---Requests suggestions from the host (`complete_code`): the single source of ghost text, completion menus and Neovim's
---own inline completion. The last response is cached and reused as long as the typed text matches the suggestion.

local eligible = require("codecompanion.inline.eligible")
local host = require("codecompanion.host")
local pace = require("codecompanion.inline.request_pace")
local place_of = require("codecompanion.inline.suggestion_place")
local recent = require("codecompanion.inline.recent_code")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local shorter = require("codecompanion.inline.short_reasons")
local surroundings = require("codecompanion.inline.surroundings")

local api = vim.api
local uv = vim.uv or vim.loop

local M = {}

---@class CodeCompanion.Suggestions
---@field place CodeCompanion.Place Place they were requested for
---@field items string[] Texts to insert at the place, best first

---@class CodeCompanion.SuggestionQuery
---@field place CodeCompanion.Place
---@field manual? boolean The user requested it: ask even if the server has just failed
---@field count? integer Number of suggestions, 1 by default

local NOT_INSTALLED = "the Python packages are not installed; run :CodeCompanion install"

---@type CodeCompanion.Suggestions?
local kept
local said_not_installed = false
---Why the last request had no result, or ""; and whether that was a failure.
local why, is_failure = "", false
---Whether the server's model does not support fill-in-the-middle, so only manual requests are sent; and the model in
---use.
local is_stopped, model = false, "" ---@type boolean, string
local waiting = 0
---Failures reported since the last success, without figures; and the one still to be shown at the cursor.
local said, news = {}, nil ---@type table<string, true>, string?

---@param query CodeCompanion.SuggestionQuery
---@return CodeCompanion.Suggestions? suggestions From the cache
local function from_kept(query)
  local items = kept and place_of.fitting(kept.items, kept.place, query.place) or {}
  return #items >= (query.count or 1) and { place = query.place, items = items } or nil
end

---@param query CodeCompanion.SuggestionQuery
---@return table? payload
---@return string? problem
local function payload_of(query)
  local place = query.place
  local text = surroundings.of(place)
  local is_utf8 = require("codecompanion.values.plain").is_utf8
  if not (is_utf8(text.before) and is_utf8(text.after) and is_utf8(text.head)) then
    return nil, "the text is not UTF-8"
  end
  return {
    path = api.nvim_buf_get_name(place.bufnr),
    filetype = vim.bo[place.bufnr].filetype,
    before = text.before,
    after = text.after,
    head = text.head,
    line = place.row,
    column = place.col,
    cwd = vim.fn.getcwd(),
    recent = recent.list(),
    manual = query.manual or false,
    count = query.count or 1,
  }
end

---Report a failure after Insert mode ends: until then, 'showmode' would hide the report, and typing should not be
---interrupted.
---@param reason string
local function say_later(reason)
  local texts = vim.tbl_map(function(form)
    return "No suggestions: " .. form
  end, shorter(reason))
  if api.nvim_get_mode().mode:sub(1, 1) ~= "i" then
    return say.line(texts, severity.WARN)
  end
  api.nvim_create_autocmd("InsertLeave", {
    once = true,
    desc = "Show why there are no suggestions",
    callback = function()
      say.line(texts, severity.WARN)
    end,
  })
end

---Record a failure, which is reported once until requests succeed again.
---@param text string
local function fail(text)
  why, is_failure = text, true
  pace.failed()
  local kind = text:gsub("%. The provider says: .*$", ""):gsub("%d+", "")
  if not said[kind] and host.status() ~= "failed" then -- a failed host reports itself
    said[kind], news = true, text
    say_later(text)
  end
end

---Return a failure that has not been shown at the cursor yet; each failure is returned only once.
---@return string?
function M.news()
  local text = news
  news = nil
  return text
end

---@param result table
---@return string[]
local function texts_of(result)
  local found = {}
  for _, item in ipairs(result.items or {}) do
    local text = (item.text or ""):gsub("\r", "")
    if text ~= "" and not vim.list_contains(found, text) then
      found[#found + 1] = text
    end
  end
  return found
end

---@param query CodeCompanion.SuggestionQuery
---@param result table
---@param ms number
---@return CodeCompanion.Suggestions?
local function take(query, result, ms)
  local items = texts_of(result)
  model, is_stopped = result.model or "", result.stopped or false
  if result.failed then
    fail(result.why or "the server failed")
    return nil
  elseif result.off then
    eligible.refuse(query.place.bufnr, result.why)
  else
    pace.answered(ms)
    said = {}
  end
  why, is_failure = #items == 0 and (result.why or "") or "", false
  if #items == 0 then
    return nil
  end
  kept = { place = query.place, items = items }
  return kept
end

---Return why no request is possible now, or nil.
---@param query CodeCompanion.SuggestionQuery
---@return string?
function M.problem(query)
  local problem = eligible.buffer_problem(query.place.bufnr)
  if problem then
    return problem
  elseif not query.manual and pace.rest_ms() > 0 then
    return "the server failed a moment ago"
  elseif not require("codecompanion.install").can_start() then
    return NOT_INSTALLED
  end
end

---Request suggestions. `callback` is called once, on the main loop, never before this function returns and not after
---`cancel`.
---@param query CodeCompanion.SuggestionQuery
---@param callback fun(suggestions: CodeCompanion.Suggestions?)
---@return fun() cancel
---@return boolean is_waiting Whether the request waits for the host; otherwise the response was cached
function M.ask(query, callback)
  local request, is_done = nil, false ---@type CodeCompanion.HostRequest?, boolean
  local function finish(suggestions)
    if not is_done then
      is_done = true
      callback(suggestions)
    end
  end
  local known = from_kept(query)
  local problem = not known and M.problem(query) or nil
  local payload
  if not known and not problem then
    payload, problem = payload_of(query)
  end
  if not payload then
    if problem == NOT_INSTALLED and not said_not_installed then
      said_not_installed, news = true, problem
      say_later(problem)
    end
    if pace.rest_ms() == 0 then -- otherwise the failure is more important
      why, is_failure = problem or "", false
    end
    vim.schedule(function()
      finish(known)
    end)
  else
    local began = uv.hrtime()
    waiting = waiting + 1
    request = host.request("complete_code", payload, function(err, result)
      waiting = waiting - 1
      if is_done then
        return
      elseif err then
        fail(err)
        return finish(nil)
      end
      finish(take(query, result or {}, (uv.hrtime() - began) / 1e6))
    end)
  end
  return function()
    if not is_done then
      is_done = true
      if request and request.id then
        host.notify("cancel_completion", { of = request.id })
      end
    end
  end,
    request ~= nil
end

---Ask the host whether suggestions are possible in a buffer: it knows secret files, adapters and the endpoint. No
---request is sent to the server.
---@param bufnr integer
---@param done fun(is_problem: boolean, address: string) `is_problem`: suggestions are not possible
function M.check(bufnr, done)
  if M.problem({ place = { bufnr = bufnr }, manual = true }) then
    return done(false, "") -- already known
  end
  local payload = { path = api.nvim_buf_get_name(bufnr), cwd = vim.fn.getcwd(), count = 0 }
  host.request("complete_code", payload, function(err, result)
    if err or not api.nvim_buf_is_valid(bufnr) then
      return done(false, "") -- a host that cannot start reports itself
    elseif result.off then
      eligible.refuse(bufnr, result.why)
    elseif result.failed then
      why, is_failure = result.why, true
    end
    model, is_stopped = result.model or "", result.stopped or false
    done(result.off or result.failed or false, result.address or "")
  end)
end

---Drop the last response, whose suggestion was rejected.
function M.forget()
  kept = nil
end

---Clear the cache, after a change of the configuration.
function M.reset()
  kept, why, is_failure, said, news = nil, "", false, {}, nil
  is_stopped, model = false, ""
  pace.reset()
end

---@return { waiting: integer, why: string, is_failure: boolean, is_stopped: boolean, model: string }
function M.state()
  return { waiting = waiting, why = why, is_failure = is_failure, is_stopped = is_stopped, model = model }
end

return M
