---Shortens a sentence to a width: first the folders of paths, then whole sentences at the end, then words.

local api = vim.api
local fit = require("codecompanion.text.fit")

local M = {}

local MORE = "… (:CodeCompanion log)"
local MIN_CUT = 60 -- cells of the message that are kept before space is given to its reference
local MIN_KEPT = 0.4 -- share of the cells: fewer whole sentences are less useful than a cut one

---Abbreviate the home folder as `~`.
---@param text string
---@return string
local function with_tilde(text)
  local home = vim.env.HOME or ""
  if #home < 2 then
    return text
  end
  return (text:gsub("%f[%w/]" .. vim.pesc(home) .. "%f[/%z%s\"'`,;:)]", "~"))
end

---Omit at least this many cells of a path's first folders, and mark the omission. The file name is never shortened.
---@param path string
---@param too_many integer
---@return string
local function shorten_path(path, too_many)
  for at in path:gmatch("()/") do
    local rest = path:sub(at)
    local is_last = not rest:find("/", 2, true)
    if api.nvim_strwidth(path) - api.nvim_strwidth(rest) - 1 >= too_many or is_last then
      return at > 3 and ("…" .. rest) or path
    end
  end
  return path
end

---Return the file paths in a sentence, longest first. URLs are not included, because users copy them.
---@param text string
---@return string[]
local function paths_of(text)
  local found = {}
  for word in text:gmatch("%S+") do
    local path = word:match("^[\"'`(]*([~%.]*/[^\"'`:;,)]+)") or word:match("^[\"'`(]*(%w[^\"'`:;,)]*/[^\"'`:;,)]+)")
    if path and not word:find("://", 1, true) and select(2, path:gsub("/", "")) > 1 then
      found[#found + 1] = path
    end
  end
  table.sort(found, function(one, other)
    return #one > #other
  end)
  return found
end

---Omit the first folders of paths until the text fits, as far as possible.
---@param text string One line
---@param room integer
---@return string
function M.with_short_paths(text, room)
  text = with_tilde(text)
  for _, path in ipairs(paths_of(text)) do
    local too_many = api.nvim_strwidth(text) - room
    if too_many <= 0 then
      break
    end
    local from, to = text:find(path, 1, true)
    if from then -- otherwise it was part of one that is already shortened
      text = text:sub(1, from - 1) .. shorten_path(path, too_many) .. text:sub(to + 1)
    end
  end
  return text
end

---Return the whole sentences at the beginning that fit, or nil if they are too short to be useful.
---@param text string
---@param room integer
---@return string?
local function whole_sentences(text, room)
  local best
  for to in text:gmatch("()[%.!?;] ") do
    local upto = text:sub(1, to):gsub(";$", "")
    if api.nvim_strwidth(upto) + 2 > room then
      break
    end
    best = upto
  end
  return best and api.nvim_strwidth(best) >= MIN_KEPT * room and best or nil
end

---Shorten a sentence to a width in cells; omissions are marked with `…`.
---@param text string One line
---@param room integer
---@return string
function M.line(text, room)
  if api.nvim_strwidth(text) <= room then
    return text
  end
  text = M.with_short_paths(text, room)
  if api.nvim_strwidth(text) <= room then
    return text
  end
  local sentences = whole_sentences(text, room)
  if sentences then
    local more = " " .. MORE
    return sentences .. (api.nvim_strwidth(sentences .. more) <= room and more or " …")
  end
  if room < MIN_CUT + api.nvim_strwidth(MORE) then
    return fit.cut_words(text, math.max(room, 1))
  end
  return fit.cut_words(text, room - api.nvim_strwidth(MORE) + 1):gsub("…$", "") .. MORE
end

return M
