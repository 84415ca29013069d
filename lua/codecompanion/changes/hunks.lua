---Computes the hunks between two versions once, as data: every proposal, approval and diff is drawn from them, and any
---subset can be applied. Pure; uses neither diff mode nor 'diffopt'.
---
---`base` is the text a proposal was made for, `theirs` the proposed text, `mine` the current text. A hunk that overlaps
---a user's change is a conflict and is never applied without asking.

local M = {}

---@class CodeCompanion.Text
---@field lines string[] Without line endings; a NUL is "\n", as in buffers
---@field eol? boolean Whether the last line ends with a newline; nil means true

---@class CodeCompanion.Hunk
---@field first integer Number of lines in the base above the hunk
---@field count integer Number of lines in the base that the hunk replaces
---@field lines string[] Replacement lines
---@field eol? boolean Whether the text ends with a newline after the hunk; nil if it does not reach the end of the text

---@class CodeCompanion.PlacedHunk
---@field indices integer[] Indices of its hunks; hunks that overlap the same change by the user are merged
---@field first integer Number of lines in `mine` above the hunk
---@field count integer Number of lines in `mine` that the hunk replaces
---@field lines string[] Replacement lines
---@field is_conflict boolean The user has also changed these lines

---@param text string
---@return CodeCompanion.Text
function M.text(text)
  if text == "" then
    return { lines = {}, eol = true }
  end
  local lines = vim.split(text, "\n", { plain = true })
  local eol = lines[#lines] == ""
  lines[#lines] = not eol and lines[#lines] or nil
  return { lines = lines, eol = eol }
end

---Return the text as one string. Empty text has no newline.
---@param text CodeCompanion.Text
---@return string
function M.joined(text)
  if #text.lines == 0 then
    return ""
  end
  local parts = {}
  for at, line in ipairs(text.lines) do
    parts[at] = line:find("\n", 1, true) and line:gsub("\n", "\0") or line
  end
  return table.concat(parts, "\n") .. (text.eol == false and "" or "\n")
end

---Return the hunks that turn `base` into `theirs`, from top to bottom.
---@param base CodeCompanion.Text
---@param theirs CodeCompanion.Text
---@return CodeCompanion.Hunk[]
function M.between(base, theirs)
  if #base.lines == 1 and base.lines[1] == "" and #theirs.lines > 1 then
    -- the single line of an empty buffer is not part of the text, and cannot be context of two hunks
    return { { first = 0, count = 1, lines = vim.list_slice(theirs.lines), eol = theirs.eol ~= false } }
  end
  local diff = vim.text and vim.text.diff or vim.diff
  local options = { result_type = "indices", algorithm = "histogram" }
  local found = {}
  for _, one in
    ipairs(diff(M.joined(base), M.joined(theirs), options) --[[@as integer[][] ]])
  do
    local first, count, new_first, new_count = unpack(one)
    first = count > 0 and first - 1 or first -- an insertion names the line above it
    local hunk = {
      first = first,
      count = count,
      lines = vim.list_slice(theirs.lines, new_first, new_first + new_count - 1),
    }
    if first + count == #base.lines then
      hunk.eol = theirs.eol ~= false
    end
    found[#found + 1] = hunk
  end
  return found
end

---Apply hunks from the diff between the base and another version.
---@param base CodeCompanion.Text
---@param hunks CodeCompanion.Hunk[] From top to bottom
---@return CodeCompanion.Text
function M.apply(base, hunks)
  local lines, at, eol = {}, 1, base.eol
  for _, hunk in ipairs(hunks) do
    vim.list_extend(lines, base.lines, at, hunk.first)
    vim.list_extend(lines, hunk.lines)
    at = hunk.first + hunk.count + 1
    if hunk.eol ~= nil then
      eol = hunk.eol
    end
  end
  return { lines = vim.list_extend(lines, base.lines, at), eol = eol }
end

---@param a CodeCompanion.Hunk
---@param b CodeCompanion.Hunk
---@return boolean
local function overlap(a, b)
  return a.first < b.first + b.count and b.first < a.first + a.count
end

---@param a CodeCompanion.Hunk
---@param b CodeCompanion.Hunk
---@return boolean
local function is_same(a, b)
  return a.first == b.first and a.count == b.count and vim.deep_equal(a.lines, b.lines)
end

---Hunks that overlap the same change by the user and are decided together; a hunk without an overlap forms its own
---group.
---@class CodeCompanion.HunkGroup
---@field indices integer[]
---@field hunks CodeCompanion.Hunk[]
---@field mine CodeCompanion.Hunk[] The user's changes that the hunks overlap

---@param hunks CodeCompanion.Hunk[]
---@param mine CodeCompanion.Hunk[]
---@return CodeCompanion.HunkGroup[] Excludes hunks that the user has already made
local function grouped(hunks, mine)
  local groups = {}
  for index, hunk in ipairs(hunks) do
    local meets, is_made = {}, false
    for _, other in ipairs(mine) do
      is_made = is_made or is_same(other, hunk)
      meets[#meets + 1] = overlap(other, hunk) and other or nil
    end
    local last = groups[#groups]
    local shared = last and #meets > 0 and last.mine[#last.mine] == meets[1]
    if not is_made and shared then
      vim.list_extend(last.indices, { index })
      vim.list_extend(last.hunks, { hunk })
      vim.list_extend(last.mine, meets, 2)
    elseif not is_made then
      groups[#groups + 1] = { indices = { index }, hunks = { hunk }, mine = meets }
    end
  end
  return groups
end

---@param base string[]
---@param group CodeCompanion.HunkGroup
---@param mine CodeCompanion.Hunk[]
---@return CodeCompanion.PlacedHunk
local function placed(base, group, mine)
  local first, last, grown, offset = math.huge, 0, 0, 0
  for _, hunk in ipairs(vim.list_extend(vim.list_slice(group.hunks), group.mine)) do
    first, last = math.min(first, hunk.first), math.max(last, hunk.first + hunk.count)
  end
  for _, other in ipairs(mine) do
    if vim.list_contains(group.mine, other) then
      grown = grown + #other.lines - other.count
    elseif other.first + other.count <= group.hunks[1].first then
      offset = offset + #other.lines - other.count
    end
  end
  local lines, at = {}, first + 1
  for _, hunk in ipairs(group.hunks) do
    vim.list_extend(lines, base, at, hunk.first)
    vim.list_extend(lines, hunk.lines)
    at = hunk.first + hunk.count + 1
  end
  return {
    indices = group.indices,
    first = first + offset,
    count = last - first + grown,
    lines = vim.list_extend(lines, base, at, last),
    is_conflict = #group.mine > 0,
  }
end

---Return the positions of hunks in the current text, from top to bottom. Hunks that overlap the same change by the user
---are merged: accepting them replaces that change.
---@param base string[]
---@param hunks CodeCompanion.Hunk[] From top to bottom
---@param mine string[]
---@return CodeCompanion.PlacedHunk[]
function M.place(base, hunks, mine)
  local of_user = M.between({ lines = base }, { lines = mine })
  return vim.tbl_map(function(group)
    return placed(base, group, of_user)
  end, grouped(hunks, of_user))
end

---Return a partially received text followed by the rest of the base, because the lines below its end have not arrived
---yet.
---@param base string[]
---@param theirs string[] Complete lines received so far
---@return string[]
function M.so_far(base, theirs)
  local hunks = M.between({ lines = base }, { lines = theirs })
  local last = hunks[#hunks]
  if last and last.first + last.count == #base and last.count > #last.lines then
    last.count = #last.lines
  end
  return M.apply({ lines = base }, hunks).lines
end

return M
