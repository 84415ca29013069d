---Formats numbers: counts, token counts, shares, durations.

local M = {}

---Return `1 message` or `2 messages`.
---@param count integer
---@param noun string
---@return string
function M.counted(count, noun)
  return ("%d %s%s"):format(count, noun, count == 1 and "" or "s")
end

---Format a count in at most five characters: 999, 1.2k, 35.8k, 1.0M.
---@param count integer
---@return string
function M.short(count)
  if count < 1000 then
    return tostring(math.floor(count))
  elseif count < 999950 then
    return ("%.1fk"):format(count / 1000)
  end
  return ("%.1fM"):format(count / 1000000)
end

---Format the size of a context window: like `short`, but round numbers have no decimals (128k, 1M).
---@param tokens integer
---@return string
function M.short_window(tokens)
  return (M.short(tokens):gsub("%.0(%a)$", "%1"))
end

---Format a duration: 850 ms, 6.1 s, 2 min 5 s.
---@param ms integer
---@return string
function M.duration(ms)
  if ms < 1000 then
    return ("%d ms"):format(ms)
  elseif ms < 60000 then
    return ("%.1f s"):format(ms / 1000)
  end
  return ("%d min %d s"):format(math.floor(ms / 60000), math.floor(ms / 1000) % 60)
end

---Format a share as a whole percentage, rounded down as R-303 requires: 100 means full.
---@param ratio number 0..1
---@return integer
function M.percent(ratio)
  return math.floor(ratio * 100 + 1e-9)
end

return M
