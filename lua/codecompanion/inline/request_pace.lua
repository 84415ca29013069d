---Determines the typing pause that triggers a request, and how long to wait before asking a failed server again
---(R-261).
---
---The pause adapts to the server's response time (a slow server is asked less often, because most of its responses
---would be late) and to the typing rhythm (a pause is longer than the gap between two keys), between half and twice the
---configured value.

local uv = vim.uv or vim.loop

local M = {}

local MIN_PAUSE_MS = 50
local SMOOTHING = 0.3 -- weight of the newest value
local RHYTHM = 1.5 -- a pause is longer than the usual gap between two keys by this factor
local MAX_GAP_MS = 1000 -- a longer gap is not part of the typing rhythm
local FIRST_RETRY_MS, MAX_RETRY_MS = 1000, 60000

local gap_ms, answer_ms ---@type number?, number?
local key_at = 0
local failures, retry_at = 0, 0

---@param old number?
---@param new number
---@return number
local function smoothed(old, new)
  return old and old + SMOOTHING * (new - old) or new
end

---Record a key press.
function M.key()
  local now = uv.hrtime() / 1e6
  local gap = now - key_at
  key_at = now
  if gap <= MAX_GAP_MS then
    gap_ms = smoothed(gap_ms, gap)
  end
end

---@param options { debounce: integer, adaptive: boolean }
---@return integer ms
function M.pause_ms(options)
  local usual = options.debounce
  if not options.adaptive or not (answer_ms or gap_ms) then
    return usual
  end
  local wanted = math.max(answer_ms or usual, RHYTHM * (gap_ms or 0))
  return math.floor(math.max(MIN_PAUSE_MS, usual / 2, math.min(wanted, 2 * usual)))
end

---Record a response.
---@param ms number
function M.answered(ms)
  answer_ms = smoothed(answer_ms, ms)
  failures, retry_at = 0, 0
end

---Record a failed request.
function M.failed()
  failures = failures + 1
  retry_at = uv.now() + math.min(FIRST_RETRY_MS * 2 ^ (failures - 1), MAX_RETRY_MS)
end

---Return how long automatic requests stay paused after a failure.
---@return integer ms 0 if not paused
function M.rest_ms()
  return math.max(retry_at - uv.now(), 0)
end

---Reset all measurements, after a change of the configuration.
function M.reset()
  gap_ms, answer_ms, key_at, failures, retry_at = nil, nil, 0, 0, 0
end

return M
