---Shows the first line of an edit's reply, `placement: replace`, in words. The text of the buffer stays the reply.

local M = {}

---Descriptions of the placements, each at least as wide as the line that it covers.
local WORDS = {
  replace = "replaces the lines",
  after = "added below the lines",
  before = "added above the lines",
  new = "for a new buffer",
  chat = "answer in words",
}

---Return the text that covers the first line of a reply, or nil if the line is not a placement.
---@param line string
---@return { [1]: string, [2]: string }[]?
function M.chunks(line)
  local words = WORDS[line:match("^placement: (%l+)$") or ""]
  return words and { { words, "CodeCompanionHint" } }
end

return M
