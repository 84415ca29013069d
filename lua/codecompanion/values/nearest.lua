---Finds the known key nearest to a mistyped one.

local M = {}

local MAX_SUGGESTIONS = 3
local MAX_EXACT = 3 -- letters of a key that is too short to be recognised with a mistake

---Return the edit distance of two words: insertions, deletions, replacements and swaps of neighbouring letters.
---@param a string
---@param b string
---@return integer
function M.distance(a, b)
  local before, previous = {}, {}
  for j = 0, #b do
    previous[j] = j
  end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, previous = previous, row
  end
  return previous[#b]
end

---@param word string
---@param candidates string[]
---@return string? nearest nil if none is close enough
function M.word(word, candidates)
  local best, best_distance
  for _, candidate in ipairs(candidates) do
    local distance = M.distance(word:lower(), candidate:lower())
    local near = distance <= math.max(1, math.floor(math.max(#word, #candidate) / 3))
    if near and (not best or distance < best_distance) then
      best, best_distance = candidate, distance
    end
  end
  return best
end

---Return the full paths of the keys nearest to `name` in the whole schema; none if more than three are equally near.
---@param schema CodeCompanion.Option
---@param name string
---@return string[]
function M.elsewhere(schema, name)
  local found, least = {}, #name > MAX_EXACT and math.floor(#name / 3) or 0
  local function search(node, path)
    for _, field in ipairs(node.fields or {}) do
      local here = path == "" and field.name or (path .. "." .. field.name)
      local distance = M.distance(name:lower(), field.name:lower())
      if distance < least then
        found, least = {}, distance
      end
      if distance == least then
        found[#found + 1] = here
      end
      search(field, here)
    end
  end
  search(schema, "")
  return #found <= MAX_SUGGESTIONS and found or {}
end

return M
