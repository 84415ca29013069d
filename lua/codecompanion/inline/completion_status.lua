---Describes the state of completion, for status lines and `:CodeCompanion complete status`.

local flow = require("codecompanion.inline.flow")
local pace = require("codecompanion.inline.request_pace")
local say = require("codecompanion.say")
local shorter = require("codecompanion.inline.short_reasons")
local source = require("codecompanion.inline.source")

local M = {
  is_on = false, ---Whether completion is enabled
}

local ANSWER_MS = 1000 -- maximum time to wait for the host, which may be starting

local last = ""
---Server URL in use, as reported by the host.
local address = ""

---Return text for status lines: `completing`, `suggestion 1/3`, `no suggestions` after a failure, or "".
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

---Redraw status lines if the state has changed.
function M.changed()
  local now = M.component()
  if now ~= last then
    last = now
    vim.cmd.redrawstatus()
  end
end

---Return when the failed server will be asked again.
---@param options table `completion` of the options
---@return string
local function next_try(options)
  if source.state().is_stopped or flow.is_manual or options.trigger == "manual" then
    return ":CodeCompanionComplete retries"
  end
  local seconds = math.ceil(pace.rest_ms() / 1000)
  return seconds > 0 and ("retries in Insert mode, in %d s at the earliest"):format(seconds)
    or "retries at the next pause in Insert mode"
end

---Return why no suggestions appear automatically, longest form first; empty if they may.
---@param bufnr integer
---@param options table `completion` of the options
---@return string[]
local function why_not(bufnr, options)
  local problem = source.problem({ place = { bufnr = bufnr }, manual = true })
  if problem then
    return { "off here: " .. problem, unpack(shorter(problem)) }
  elseif source.state().is_failure then
    return vim.tbl_map(function(form)
      return form .. "; " .. next_try(options)
    end, shorter(source.state().why))
  elseif flow.is_manual or options.trigger == "manual" then
    return { ":CodeCompanionComplete asks for suggestions" }
  end
  local why = source.state().why
  return why ~= "" and { why } or {}
end

---Return the URL in the options, without password and query.
---@param options table `completion` of the options
---@return string
local function plain_url(options)
  local url = (options.url or ""):gsub("?.*$", ""):gsub("//[^/]*@", "//")
  return url
end

---Return the settings in use.
---@param options table `completion` of the options
---@return string
function M.settings(options)
  local pause = options.adaptive and "about %d ms" or "%d ms"
  local when = options.trigger == "manual" and "when you ask" or ("after a pause of " .. pause:format(options.debounce))
  local url = plain_url(options)
  return ("%s at %s%s, %s"):format(options.model, options.endpoint, url ~= "" and " " .. url or "", when)
end

---Return the endpoint in use: the URL reported by the host, otherwise the one in the options.
---@param options table `completion` of the options
---@return string
local function asked(options)
  local url = plain_url(options)
  local where = address ~= "" and address or url
  local model = source.state().model
  model = model ~= "" and model or options.model
  return ("Completion is on (%s, %s%s)"):format(options.endpoint, model, where ~= "" and ", " .. where or "")
end

---@return string? sentence Reports that completion options are invalid
local function mistakes()
  for _, problem in ipairs(require("codecompanion.config").findings().problems) do
    if problem:find("completion%.%w") then
      return "An invalid completion option is ignored; see :CodeCompanion problems"
    end
  end
end

---Return the state of completion and why nothing appears, longest form first, for `say.line`.
---@param bufnr? integer Defaults to the current buffer
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

---Return the full status, without omissions.
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

---Show the full status, in one row if it fits and there is no problem.
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
    return say.line(sentences) -- do not move a user who keeps typing
  end
  local float = require("codecompanion.screen.float")
  float.open({ title = "Completion", lines = lines, footer = "q close" })
end

---Show the status on the command line.
---@param asks_host boolean Whether to ask the host first, which otherwise knows nothing before the first pause in
---typing, and show the full status
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
      return say.line(M.sentences()) -- the host had to be started first
    end
    tell()
  end)
  vim.defer_fn(tell, ANSWER_MS)
end

return M
