---How completion is doing, in words: for status lines and for `:CodeCompanion complete status`.

local flow = require("codecompanion.inline.flow")
local pace = require("codecompanion.inline.pace")
local say = require("codecompanion.say")
local shorter = require("codecompanion.inline.shorter")
local source = require("codecompanion.inline.source")

local M = {
  is_on = false, ---Whether completion is on
}

local last = ""

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
  if flow.by_hand or options.trigger == "manual" then
    return "; :CodeCompanionComplete asks again"
  end
  local seconds = math.ceil(pace.rest_ms() / 1000)
  return seconds > 0 and ("; asked again in %d s"):format(seconds) or "; asked again at the next pause"
end

---@param options table `completion` of the options
---@return string[]
local function failure(options)
  local tail, room = next_try(options), vim.v.echospace
  local forms = vim.tbl_map(function(form)
    return form .. tail
  end, shorter(source.state().why))
  local shortest = forms[#forms]
  if vim.fn.strdisplaywidth(shortest) > room then -- when it is asked again is not what is cut
    forms[#forms + 1] = vim.fn.strcharpart(shortest, 0, room - #tail - 1) .. "…" .. tail
  end
  return forms
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
    return failure(options)
  elseif flow.by_hand or options.trigger == "manual" then
    return { ":CodeCompanionComplete asks" }
  end
  local why = source.state().why
  return why ~= "" and { why } or {}
end

---What is used, and how.
---@param options table `completion` of the options
---@return string
function M.settings(options)
  local pause = options.adaptive and "about %d ms" or "%d ms"
  local when = options.trigger == "manual" and "when you ask" or ("after a pause of " .. pause:format(options.debounce))
  local url = (options.url or ""):gsub("?.*$", ""):gsub("//[^/]*@", "//") -- without a password
  return ("%s at %s%s, %s"):format(options.model, options.endpoint, url ~= "" and " " .. url or "", when)
end

---What it is doing, and why nothing comes: the same in fewer and fewer words, for `say.line`.
---@param bufnr? integer The current buffer when not given
---@return string[]
function M.sentences(bufnr)
  if not M.is_on then
    return { "Completion is off; :CodeCompanion complete on switches it on", "Completion is off" }
  end
  local options = require("codecompanion.config").options.completion
  local what = ("Completion is on (%s, %s)"):format(options.endpoint, options.model)
  local rest = why_not(bufnr or vim.api.nvim_get_current_buf(), options)
  local now = M.component()
  if now ~= "" and now ~= "no suggestions" then
    rest = { now }
  elseif #rest == 0 then
    return { what, "Completion is on" }
  end
  return { ("%s; %s"):format(what, rest[1]), "Completion is on; " .. rest[1], unpack(rest) }
end

---Say so on the command line.
---@param asks_host boolean And once more when the host, who is asked nothing before a first pause, knows better
function M.tell(asks_host)
  say.line(M.sentences())
  if asks_host and M.is_on then
    source.check(vim.api.nvim_get_current_buf(), function()
      say.line(M.sentences())
    end)
  end
end

return M
