---A sentence in the cells there are: the folder of a path gives way first, then whole sentences at the end, then words.

local api = vim.api
local fit = require("codecompanion.text.fit")

local M = {}

local MORE = "… (:CodeCompanion log)"
local MIN_CUT = 60 -- cells of what is said itself, before room is given to where the rest is
local MIN_KEPT = 0.4 -- of the cells: less than that of whole sentences says less than a cut one

---The home folder is `~`, as people write it.
---@param text string
---@return string
local function with_tilde(text)
  local home = vim.env.HOME or ""
  if #home < 2 then
    return text
  end
  return (text:gsub("%f[%w/]" .. vim.pesc(home) .. "%f[/%z%s\"'`,;:)]", "~"))
end

---Leave the first folders of a path out, so many cells of it, and say so. The name of the file is never cut.
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

---The paths of files in a text, the longest first. Addresses of pages are none: they are copied.
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

---Leave first folders of paths out until the text fits, or as many as there are.
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
    if from then -- else it was part of one that is shorter now
      text = text:sub(1, from - 1) .. shorten_path(path, too_many) .. text:sub(to + 1)
    end
  end
  return text
end

---The whole sentences at the beginning that fit, nil when they are too few to say much.
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

---Say a text in so many cells; what is left out is marked with `…`.
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
    return fit.cut(text, math.max(room, 1))
  end
  return fit.cut(text, room - api.nvim_strwidth(MORE) + 1):gsub("…$", "") .. MORE
end

return M
