---What a trigger may be (R-502): a fraction of the window, a number of tokens, a percentage, a function, or false.

local tokens = require("codecompanion.config.tokens")

---@class CodeCompanion.TriggerContext
---@field adapter CodeCompanion.AdapterInfo
---@field model string
---@field window integer Tokens

---The value of a trigger as the host gets it, or what is wrong with it.
---@param value any
---@return string? problem
---@return number|boolean|function|nil normalised
return function(value)
  if value == false or type(value) == "function" then
    return nil, value
  end
  if value == true then
    return "true is not a trigger; false turns the stage off"
  end
  if type(value) == "string" and value:match("[kKmM]$") and tokens.parse(value) then
    return nil, tokens.parse(value)
  end
  if type(value) == "string" then
    local percent = tonumber(value:match("^%s*(%d+%.?%d*)%s*%%%s*$"))
    if not percent then
      return ("%q is not a share of the window; a percentage looks like %q"):format(value, "85%")
    end
    if percent <= 0 or percent >= 100 then
      return ("%q is not between 0%% and 100%%"):format(value)
    end
    return nil, percent / 100
  end
  if value ~= value or value <= 0 then
    return ("%s is not positive; false turns the stage off"):format(value)
  end
  if value == 1 then
    return "1 could mean 100 % or one token; write a fraction below 1, a number of tokens from 2 on, or false"
  end
  if value > 1 and value % 1 ~= 0 then
    return ("%s is not a whole number of tokens; write a fraction below 1 or a whole number from 2 on"):format(value)
  end
  return nil, value
end
