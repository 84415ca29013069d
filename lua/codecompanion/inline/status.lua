---How completion is doing, in words: for status lines and for `:CodeCompanion complete status`.

local eligible = require("codecompanion.inline.eligible")
local flow = require("codecompanion.inline.flow")
local pace = require("codecompanion.inline.pace")
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

---Why nothing comes by itself, "" when something may.
---@param bufnr integer
---@param options table `completion` of the options
---@return string
local function why_not(bufnr, options)
  local problem = eligible.buffer_problem(bufnr)
  if problem then
    return "nothing here: " .. problem
  end
  local state = source.state()
  if state.is_failure then
    local seconds = math.ceil(pace.rest_ms() / 1000)
    return state.why .. (seconds > 0 and (" (not asked again for %d s)"):format(seconds) or "")
  elseif flow.by_hand or options.trigger == "manual" then
    return ":CodeCompanionComplete asks"
  end
  return state.why
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
  local why = why_not(bufnr or vim.api.nvim_get_current_buf(), options)
  local now = M.component()
  local rest = (now == "" or now == "no suggestions") and why or now
  if rest == "" then
    return { what, "Completion is on" }
  end
  return { ("%s; %s"):format(what, rest), "Completion is on; " .. rest, rest }
end

return M
