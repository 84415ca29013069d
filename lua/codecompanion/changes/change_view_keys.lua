---Builds the winbar of a change view and lists its keys; keys that do not work there are omitted.

local api = vim.api
local counts = require("codecompanion.changes.line_counts").text
local fit = require("codecompanion.text.fit")
local keys = require("codecompanion.changes.decision_keys")

local M = {}

---Minimum width of the path in cells. In a narrow window the hunk count is omitted first, then the name, which the tab
---line also shows, then `g1`.
local MIN_PATH = 12
---Verbs that decide, with their labels, in the order of the winbar.
local DECISIONS = { { "accept_change", "accept" }, { "reject_change", "reject" }, { "always_accept", "always…" } }

---Return the decisions that a view offers, with their labels.
---@param options CodeCompanion.ChangeViewOptions
---@return { [1]: string, [2]: string }[]
local function offered(options)
  local actions, words, found = options.actions or {}, options.words or {}, {}
  for _, decision in ipairs(DECISIONS) do
    local verb, label = decision[1], words[decision[1]]
    if actions[verb] and label ~= false then
      found[#found + 1] = { verb, label or decision[2] }
    end
  end
  return found
end

---@param options CodeCompanion.ChangeViewOptions
---@param bufnr integer
---@param hunk_count integer
---@return string[] hints The most important first
---@return integer needed Number of hints that are shown before the others
local function hints(options, bufnr, hunk_count)
  local found = {}
  for _, decision in ipairs(offered(options)) do
    local key = keys.of(decision[1], bufnr)
    found[#found + 1] = key and key .. " " .. decision[2] or nil
  end
  found[#found + 1] = "q back"
  local needed = #found
  local skip, next_key = keys.of("skip_hunk", bufnr), keys.of("next_hunk", bufnr)
  found[#found + 1] = options.is_editable and skip and skip .. " skip hunk" or nil
  found[#found + 1] = hunk_count > 1 and next_key and next_key .. " next" or nil
  found[#found + 1] = "g? keys"
  return found, needed
end

---Return a size such as `+3 −7` and, for several hunks, `+3 −7 · 2 hunks`.
---@param all CodeCompanion.Hunk[]
---@return string size
---@return string with_hunks
local function size_of(all)
  local sum = { added = 0, removed = 0 }
  for _, hunk in ipairs(all) do
    sum.added, sum.removed = sum.added + #hunk.lines, sum.removed + hunk.count
  end
  local size = counts(sum)
  return size, #all > 1 and ("%s · %d hunks"):format(size, #all) or size
end

---Return the keys for a narrow window; `q back`, the last of the needed ones, is always shown.
---@param found string[]
---@param needed integer
---@param width integer
---@return string
local function without_name(found, needed, width)
  for count = needed - 1, 0, -1 do
    local shown = vim.list_extend(vim.list_slice(found, 1, count), { found[needed] })
    local text = " " .. table.concat(shown, " · ")
    if api.nvim_strwidth(text) <= width or count == 0 then
      return text
    end
  end
  return ""
end

---Return the title, the size and as many keys as fit.
---@param options CodeCompanion.ChangeViewOptions
---@param bufnr integer
---@param all CodeCompanion.Hunk[]
---@param width integer
---@return string
function M.winbar(options, bufnr, all, width)
  local name = vim.fn.fnamemodify(options.path, ":~:.")
  local found, needed_count = hints(options, bufnr, #all)
  local needed = table.concat(vim.list_slice(found, 1, needed_count), " · ")
  local function room_beside(size)
    return width - api.nvim_strwidth((" %s   %s · %s "):format(options.title, size, needed))
  end
  local short, size = size_of(all)
  size = room_beside(size) < MIN_PATH and short or size
  local room = room_beside(size)
  if room < math.min(MIN_PATH, api.nvim_strwidth(name)) then
    return without_name(found, needed_count, width)
  end
  local text = (" %s %s  %s"):format(options.title, fit.path(name, math.max(MIN_PATH, room)), size)
  for _, hint in ipairs(found) do
    local longer = text .. " · " .. hint
    if api.nvim_strwidth(longer) >= width then
      break
    end
    text = longer
  end
  return text
end

---List the keys of a view in a float.
---@param options CodeCompanion.ChangeViewOptions
---@param bufnr integer
function M.show(options, bufnr)
  local works = { next_hunk = true, previous_hunk = true, skip_hunk = options.is_editable == true }
  works.cancel = (options.actions or {}).cancel ~= nil
  for _, decision in ipairs(offered(options)) do
    works[decision[1]] = true
  end
  local rows = keys.described(bufnr, works, keys.OF_CHANGES)
  local note = options.is_editable and "The proposed text can be edited before you accept it; u undoes an edit." or nil
  keys.show(options.title, vim.list_extend(rows, { { keys = "q", text = "Go back" } }), note)
end

return M
