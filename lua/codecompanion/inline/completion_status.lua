---How completion is doing, in words: for status lines and for `:CodeCompanion complete status`.

local flow = require("codecompanion.inline.flow")
local pace = require("codecompanion.inline.request_pace")
local say = require("codecompanion.say")
local shorter = require("codecompanion.inline.short_reasons")
local source = require("codecompanion.inline.source")

local M = {
  is_on = false, ---Whether completion is on
}

local ANSWER_MS = 1000 -- so long the host, which may be starting, is waited for

local last = ""
---What the host said: which address is asked.
local address = ""

---For status lines: `completing`, `suggestion 1/3`, `no suggestions` after a failure; "" when there is nothing to say.
---@return string
function M.component()
  if not M.is_on then
    return ""
  elseif flow.is_asking() then
    return "completing"
  end
  local index, count = flow.shown()
  if index then
    return count > 1 and ("suggestion %d/%d"):format(index, count) or "suggestion"
  end
  return source.state().is_failure and "no suggestions" or ""
end

---Something may have changed: let status lines be drawn again if it has.
function M.changed()
  local now = M.component()
  if now ~= last then
    last = now
    vim.cmd.redrawstatus()
  end
end

---When the server that failed is asked again.
---@param options table `completion` of the options
---@return string
local function next_try(options)
  if source.state().is_stopped or flow.by_hand or options.trigger == "manual" then
    return ":CodeCompanionComplete asks again"
  end
  local seconds = math.ceil(pace.rest_ms() / 1000)
  return seconds > 0 and ("asked again in Insert mode, in %d s at the earliest"):format(seconds)
    or "asked again at the next pause in Insert mode"
end

---Why nothing comes by itself, in fewer and fewer words; empty when something may.
---@param bufnr integer
---@param options table `completion` of the options
---@return string[]
local function why_not(bufnr, options)
  local problem = source.problem({ place = { bufnr = bufnr }, manual = true })
  if problem then
    return { "nothing here: " .. problem, unpack(shorter(problem)) }
  elseif source.state().is_failure then
    return vim.tbl_map(function(form)
      return form .. "; " .. next_try(options)
    end, shorter(source.state().why))
  elseif flow.by_hand or options.trigger == "manual" then
    return { ":CodeCompanionComplete asks" }
  end
  local why = source.state().why
  return why ~= "" and { why } or {}
end

---The address of the options, without a password or a query.
---@param options table `completion` of the options
---@return string
local function plain_url(options)
  local url = (options.url or ""):gsub("?.*$", ""):gsub("//[^/]*@", "//")
  return url
end

---What is used, and how.
---@param options table `completion` of the options
---@return string
function M.settings(options)
  local pause = options.adaptive and "about %d ms" or "%d ms"
  local when = options.trigger == "manual" and "when you ask" or ("after a pause of " .. pause:format(options.debounce))
  local url = plain_url(options)
  return ("%s at %s%s, %s"):format(options.model, options.endpoint, url ~= "" and " " .. url or "", when)
end

---Who is asked: an address that the host has not named yet is the one of the options.
---@param options table `completion` of the options
---@return string
local function asked(options)
  local url = plain_url(options)
  local where = address ~= "" and address or url
  local model = source.state().model
  model = model ~= "" and model or options.model
  return ("Completion is on (%s, %s%s)"):format(options.endpoint, model, where ~= "" and ", " .. where or "")
end

---@return string? sentence That options of completion are not as they were meant
local function mistakes()
  for _, problem in ipairs(require("codecompanion.config").findings().problems) do
    if problem:find("completion%.%w") then
      return "An option of completion is wrong and not used: :CodeCompanion problems"
    end
  end
end

---What it is doing, and why nothing comes: the same in fewer and fewer words, for `say.line`.
---@param bufnr? integer The current buffer when not given
---@return string[]
function M.sentences(bufnr)
  if not M.is_on then
    return { "Completion is off; :CodeCompanion complete on switches it on", "Completion is off" }
  end
  local options = require("codecompanion.config").options.completion
  local what = asked(options)
  local rest = why_not(bufnr or vim.api.nvim_get_current_buf(), options)
  local now = M.component()
  if now ~= "" and now ~= "no suggestions" then
    rest = { now }
  elseif #rest == 0 then
    return { what, "Completion is on" }
  end
  return { ("%s; %s"):format(what, rest[1]), "Completion is on; " .. rest[1], unpack(rest) }
end

---Everything that is known of it, for whoever asks: nothing is left out.
---@param bufnr integer
---@return string[] lines
function M.lines(bufnr)
  local options = require("codecompanion.config").options.completion
  local lines = { asked(options) }
  local problem = source.problem({ place = { bufnr = bufnr }, manual = true })
  if source.state().is_failure and not problem then
    lines[2] = "No suggestions: " .. source.state().why:gsub("^completion: ", "")
    lines[3] = next_try(options):gsub("^%l", string.upper)
  else
    lines[2] = why_not(bufnr, options)[1]
  end
  lines[#lines + 1] = mistakes()
  return lines
end

---Say all of it: in one row where that has room, and where there is nothing wrong.
local function tell_all()
  local bufnr, sentences = vim.api.nvim_get_current_buf(), M.sentences()
  if not M.is_on then
    return say.line(sentences)
  end
  local lines, row = M.lines(bufnr), { sentences[1] }
  local has_room = vim.fn.strdisplaywidth(sentences[1]) <= vim.v.echospace
  if has_room and not source.state().is_failure and not mistakes() then
    return say.line(row)
  end
  if vim.api.nvim_get_mode().mode ~= "n" then
    return say.line(sentences) -- whoever types on meanwhile is not taken away
  end
  local float = require("codecompanion.screen.float")
  float.open({ title = "Completion", lines = lines, footer = "q close" })
end

---Say so on the command line.
---@param asks_host boolean All of it, once the host, who is asked nothing before a first pause, has said what it knows
function M.tell(asks_host)
  if not (asks_host and M.is_on) then
    return say.line(M.sentences())
  end
  local is_told = false
  local function tell()
    if not is_told then
      is_told = true
      tell_all()
    end
  end
  source.check(vim.api.nvim_get_current_buf(), function(is_problem, where)
    address = where
    if is_told and (is_problem or where ~= "") then
      return say.line(M.sentences()) -- a host that had to be started first
    end
    tell()
  end)
  vim.defer_fn(tell, ANSWER_MS)
end

return M
