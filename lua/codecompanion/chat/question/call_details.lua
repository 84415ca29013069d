---Shows the facts that the block of a tool call's approval lacks: folder, place, limits, the reason for asking, and the
---scopes of "always", above the whole command or text. The facts come first, so that no command can imitate them.

local M = {}

local scope = require("codecompanion.chat.question.always_scope")
local visible = require("codecompanion.text.visible_characters")

---Place and access of a command, by `place` of the event.
local PLACES = {
  inside = "in the sandbox: no network, writes in the workspace and /tmp",
  network = "in the sandbox, with network: ",
  outside = "outside the sandbox",
  none = "without a sandbox (none on this system)",
  off = "without a sandbox (it is off)",
}

---Return why the call is not run without asking.
---@param event table approval_requested event
---@return string
local function reason_of(event)
  if event.retry then
    return "it failed in the sandbox"
  elseif event.why ~= "" then
    return event.why
  elseif event.again ~= "" then
    return event.again
  end
  return "nothing allows it yet"
end

---Return the facts, in the order in which they are shown.
---@param event table approval_requested event
---@return { [1]: string, [2]: string }[] name, text
local function facts_of(event)
  local facts, offered = {}, event.why == "" and event.narrowed == "" and not event.retry
  local function add(name, text)
    facts[#facts + 1] = { name, visible.line(text).text }
  end
  if (event.cwd or "") ~= "" then
    add("Folder", vim.fn.fnamemodify(event.cwd, ":~"))
  end
  if PLACES[event.place] then
    local hosts = #(event.hosts or {}) > 0 and table.concat(event.hosts, ", ") or "any host"
    add("Runs", PLACES[event.place] .. (event.place == "network" and hosts or ""))
  end
  if (event.limit_s or 0) > 0 then
    add("Time limit", ("%g s"):format(event.limit_s))
    add("Environment", "yours, without secrets; no terminal, no input")
  end
  add("Asks because", reason_of(event))
  if (event.note or "") ~= "" then
    add("Note", event.note)
  end
  if event.narrowed ~= "" then
    add("Always", "not offered: " .. require("codecompanion.chat.question.no_always").reason(event))
  elseif not offered then
    add("Always", "not offered")
  end
  for index, one in ipairs(offered and scope.scopes(event) or {}) do
    add(index == 1 and "Always" or "or", (index == 1 and "in this chat, " or "") .. scope.text(one))
  end
  return facts
end

---Return the lines: facts, an empty line, the text of the call.
---@param event table approval_requested event
---@param body string The text as it is shown
---@return string[]
function M.lines(event, body)
  local lines, mark = {}, event.filetype == "sh" and "# " or ""
  for _, fact in ipairs(facts_of(event)) do
    lines[#lines + 1] = ("%s%-12s  %s"):format(mark, fact[1], fact[2])
  end
  return vim.list_extend(vim.list_extend(lines, { "" }), vim.split(body, "\n", { plain = true }))
end

return M
