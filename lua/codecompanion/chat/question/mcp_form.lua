---Asks the user for the values that a server requests, one simple input after another.

local choose = require("codecompanion.screen.choose")
local fit = require("codecompanion.text.fit")
local visible = require("codecompanion.text.visible_characters")

local M = {}

local SHOWN = 60 -- maximum cells of the choices

---@class CodeCompanion.FormField
---@field name string
---@field label string
---@field default string
---@field choices string[]
---@field required? boolean
---@field secret? boolean

---@param choices string[] The block shows all of them
---@return string
local function shown(choices)
  local text = table.concat(choices, ", ")
  text = visible.line(text).text
  return #text <= SHOWN and text or ("%s %d in all"):format(fit.cut(text, SHOWN), #choices)
end

---Ask for the values; secrets are masked while typing. Cancelling an input (`<Esc>`, `<C-c>`) keeps the whole question
---open, and the values entered so far are filled in next time, except secrets.
---@param form string JSON list of fields
---@param kept table<string, string> Values entered so far, by name; modified in place
---@param given fun(values: string) JSON object of strings by name
function M.fill(form, kept, given)
  local fields, values = vim.json.decode(form), vim.empty_dict()
  local function ask(index)
    local field = fields[index]
    if not field then
      choose.forget_prompt() -- not earlier: it would clear the next question
      return given(vim.json.encode(values))
    end
    local choices = #field.choices > 0 and (" (%s)"):format(shown(field.choices)) or ""
    local label = visible.line(field.label).text
    if field.secret then
      -- Masked and not stored: not in the input history, the shada file or the next attempt.
      local ok, secret = pcall(vim.fn.inputsecret, label .. ": ")
      if ok and (secret ~= "" or not field.required) then
        values[field.name] = secret
        return ask(index + 1)
      end
      return choose.forget_prompt()
    end
    local opts = { prompt = label .. choices .. ": ", default = kept[field.name] or field.default }
    pcall(vim.ui.input, opts, function(text)
      if text then
        values[field.name], kept[field.name] = text, text
        return ask(index + 1)
      end
      choose.forget_prompt()
    end)
  end
  ask(1)
end

return M
