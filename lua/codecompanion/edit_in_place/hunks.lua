---What differs between lines, and where that is in lines that somebody else has changed meanwhile. Pure.
---
---`base` is what an edit began with, `theirs` what the model makes of it, `mine` what the buffer has now. A change that
---both made is no change any more; one that overlaps with the user's is a conflict, and is never made by itself.

local M = {}

---@class CodeCompanion.EditHunk
---@field first integer Lines of the base before it
---@field count integer Lines of the base that it replaces
---@field lines string[] What comes in their place

---@class CodeCompanion.PlacedHunk
---@field hunk CodeCompanion.EditHunk
---@field first integer Lines of `mine` before it
---@field count integer Lines of `mine` that it would replace
---@field lines string[] What would come in their place
---@field is_conflict boolean The user has changed these lines, too

---@param lines string[]
---@return string
local function joined(lines)
  if #lines == 0 then
    return ""
  end
  return table.concat(lines, "\n") .. "\n"
end

---What makes `theirs` of `base`, from top to bottom.
---@param base string[]
---@param theirs string[]
---@return CodeCompanion.EditHunk[]
function M.between(base, theirs)
  local diff = vim.text and vim.text.diff or vim.diff
  local options = { result_type = "indices", algorithm = "histogram" }
  local found = {}
  for _, one in
    ipairs(diff(joined(base), joined(theirs), options) --[[@as integer[][] ]])
  do
    local first, count, new_first, new_count = unpack(one)
    found[#found + 1] = {
      first = count > 0 and first - 1 or first, -- an insertion names the line above it
      count = count,
      lines = vim.list_slice(theirs, new_first, new_first + new_count - 1),
    }
  end
  return found
end

---@param base string[]
---@param hunks CodeCompanion.EditHunk[] From top to bottom
---@return string[]
function M.apply(base, hunks)
  local lines, at = {}, 1
  for _, hunk in ipairs(hunks) do
    vim.list_extend(lines, base, at, hunk.first)
    vim.list_extend(lines, hunk.lines)
    at = hunk.first + hunk.count + 1
  end
  return vim.list_extend(lines, base, at)
end

---@param a CodeCompanion.EditHunk
---@param b CodeCompanion.EditHunk
---@return boolean
local function overlap(a, b)
  return a.first < b.first + b.count and b.first < a.first + a.count
end

---Whether a change stands above a place, and moves it.
---@param mine CodeCompanion.EditHunk
---@param hunk CodeCompanion.EditHunk
---@return boolean
local function is_above(mine, hunk)
  return mine.first + mine.count <= hunk.first
end

---One change of the model's among those of the user.
---@param base string[]
---@param hunk CodeCompanion.EditHunk
---@param mine CodeCompanion.EditHunk[]
---@return CodeCompanion.PlacedHunk? placed nil when the user has made the same change
local function placed(base, hunk, mine)
  local offset, grown, touching = 0, 0, {}
  local first, last = hunk.first, hunk.first + hunk.count
  for _, other in ipairs(mine) do
    if overlap(other, hunk) then
      touching[#touching + 1] = other
      first, last = math.min(first, other.first), math.max(last, other.first + other.count)
      grown = grown + #other.lines - other.count
    elseif is_above(other, hunk) then
      offset = offset + #other.lines - other.count
    end
  end
  local only = #touching == 1 and touching[1]
  if only and only.first == hunk.first and only.count == hunk.count and vim.deep_equal(only.lines, hunk.lines) then
    return nil
  end
  local lines = vim.list_extend(vim.list_slice(base, first + 1, hunk.first), hunk.lines)
  vim.list_extend(lines, base, hunk.first + hunk.count + 1, last)
  return {
    hunk = hunk,
    first = first + offset,
    count = last - first + grown,
    lines = lines,
    is_conflict = #touching > 0,
  }
end

---Where the changes that make `theirs` of `base` are in `mine`, from top to bottom.
---@param base string[]
---@param theirs string[]
---@param mine string[]
---@return CodeCompanion.PlacedHunk[]
function M.place(base, theirs, mine)
  local of_user, found = M.between(base, mine), {}
  for _, hunk in ipairs(M.between(base, theirs)) do
    local one = placed(base, hunk, of_user)
    -- An insertion that both made at the same place
    local same = one
      and hunk.count == 0
      and vim.iter(of_user):any(function(other)
        return other.count == 0 and other.first == hunk.first and vim.deep_equal(other.lines, hunk.lines)
      end)
    if one and not same then
      found[#found + 1] = one
    end
  end
  return found
end

---What a text that is still arriving has changed so far: below its end nothing is decided yet.
---@param base string[]
---@param theirs string[] Its whole lines so far
---@return string[] so_far Like `theirs`, and the rest of the base
function M.so_far(base, theirs)
  local hunks = M.between(base, theirs)
  local last = hunks[#hunks]
  if last and last.first + last.count == #base and last.count > #last.lines then
    last.count = #last.lines
  end
  return M.apply(base, hunks)
end

return M
