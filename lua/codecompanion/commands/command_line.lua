---`:CodeCompanionCmd {words}`: asks the model for a command line, and types it for the user, who reads it and presses
---<CR>. Nothing here ever runs it.
---
---A model's reply is untrusted text. It is typed into the command line key by key, without mappings, so it must be one
---line without invisible characters or keys of the command line. It is typed only while the user is not typing: a <CR>
---meant for something else would run it.

local api = vim.api
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

local SHOWN_CHARS = 4000 -- maximum characters of the range that are sent to the model
local LINE_CHARS = 500 -- maximum characters of the cursor's line
local QUIET_MS = 400 -- required pause in the user's typing
local MAX_CHARS = 1000

---@class CodeCompanion.CommandLineRequest
---@field words string
---@field bufnr integer
---@field range? { [1]: integer, [2]: integer } 1-based lines

---Invisible characters, which could hide the effect of a command line.
local INVISIBLE = {
  "\226\128[\139-\143]",
  "\226\128[\168-\174]",
  "\226\129[\160-\175]",
  "\239\187\191",
  "\194\173",
  "\216\156",
}

---@param text string
---@return string? problem
local function unsafe(text)
  if text:find("[%z\1-\31\127]") or text:find("\194[\128-\159]") then
    return "it contains control characters, which act as keys on the command line"
  end
  for _, pattern in ipairs(INVISIBLE) do
    if text:find(pattern) then
      return "it contains invisible characters"
    end
  end
  if vim.fn.strchars(text) > MAX_CHARS then
    return ("it is longer than %d characters"):format(MAX_CHARS)
  end
  if vim.fn.strtrans(text) ~= text then
    return "it contains unprintable characters"
  end
end

---Return the text of a code block that is the only code in a reply.
---@param text string
---@return string
local function without_fence(text)
  local fenced = text:match("^```[%w_-]*\n(.-)\n?```$") or text:match("^`([^`\n]+)`$")
  if not fenced and select(2, text:gsub("```", "")) == 2 then
    fenced = text:match("\n```[%w_-]*\n([^\n]*)\n```") -- prose around one line
  end
  return vim.trim(fenced or text)
end

---Return whether a reply is prose for the user instead of a command. Neovim parses the start of a command; a sentence
---that starts like a command consists of plain words, or quotes a command.
---@param text string
---@return boolean
local function is_prose(text)
  local ok, parsed = pcall(api.nvim_parse_cmd, text, {})
  if not ok and (tostring(parsed):find("E492:", 1, true) or tostring(parsed):find("E464:", 1, true)) then
    return true
  elseif ok and parsed.cmd == "normal" then -- its argument is typed text
    return false
  elseif text:find("`:[^`]*`") then
    return true
  end
  local words = vim.split(text:gsub("`[^`]*`", ""), "%s+", { trimempty = true })
  local is_sentence = #words > 3 and text:find("[.!?:]$") ~= nil
  return is_sentence
    and vim.iter(words):all(function(word)
      return word:find("^%(?[%a\128-\255'-]*%)?[.,;:!?]*$") ~= nil
    end)
end

---Parse the model's reply.
---@param answer string
---@return string? command Without the leading colon
---@return string? problem Why the reply is not a usable command
function M.read(answer)
  local text = without_fence(vim.trim(answer))
  local lines = vim.split(text, "\n", { plain = true })
  if text == "" then
    return nil, "The model's reply was empty."
  elseif #lines > 1 then
    return nil, ("The model replied with %d lines instead of one command line."):format(#lines)
  end
  text = vim.trim((text:gsub("^:+", "")))
  if text == "" then
    return nil, "The model's reply was empty."
  end
  local problem = unsafe(text)
  if problem then
    return nil, ("The model's command line is not shown: %s."):format(problem)
  elseif text:sub(1, 1) == '"' then
    return nil, ("The model found no command line: %s"):format(vim.trim((text:gsub('^"+', ""))))
  elseif is_prose(text) then
    return nil, ("The model replied in prose: %s"):format(text)
  end
  return text
end

---Return the prompt with the state of the editor.
---@param request CodeCompanion.CommandLineRequest
---@return string
function M.question(request)
  local version = vim.version()
  local name = api.nvim_buf_get_name(request.bufnr)
  local lines = {
    "Request: " .. request.words,
    "",
    ("Neovim %d.%d.%d"):format(version.major, version.minor, version.patch),
    ("File: %s"):format(name == "" and "(no name)" or vim.fn.fnamemodify(name, ":.")),
    ("Filetype: %s"):format(vim.bo[request.bufnr].filetype == "" and "(none)" or vim.bo[request.bufnr].filetype),
    ("Lines: %d"):format(api.nvim_buf_line_count(request.bufnr)),
  }
  local sends_code = require("codecompanion.editor_context.send_code").is_allowed() -- the words are always sent
  if not request.range then
    local row = api.nvim_win_get_cursor(0)[1]
    lines[#lines + 1] = ("Cursor: line %d"):format(row)
    if not sends_code then
      return table.concat(lines, "\n")
    end
    local text = api.nvim_buf_get_lines(request.bufnr, row - 1, row, false)[1] or ""
    lines[#lines + 1] = "Its text: " .. vim.fn.strcharpart(text, 0, LINE_CHARS)
    return table.concat(lines, "\n")
  end
  local first, last = request.range[1], request.range[2]
  if not sends_code then
    lines[#lines + 1] = ("Selected lines: %d to %d; their range is %d,%d"):format(first, last, first, last)
    return table.concat(lines, "\n")
  end
  local text = table.concat(api.nvim_buf_get_lines(request.bufnr, first - 1, last, false), "\n")
  local shown = vim.fn.strcharpart(text, 0, SHOWN_CHARS)
  lines[#lines + 1] = ("Selected lines: %d to %d; their range is %d,%d"):format(first, last, first, last)
  lines[#lines + 1] = #shown < #text and "Their text, truncated:" or "Their text:"
  lines[#lines + 1] = ""
  lines[#lines + 1] = shown
  return table.concat(lines, "\n")
end

---Type a command line, without <CR>.
---@param command string As returned by `read`
local function type_in(command)
  -- "n": no mappings or abbreviations; "t": as if typed, so that it enters the history when the user runs it. No byte
  -- of the text is a key: `escape_ks` handles those inside letters.
  api.nvim_feedkeys(":" .. command, "nt", true)
end

---@return boolean
local function is_free()
  local mode = api.nvim_get_mode()
  return mode.mode == "n" and not mode.blocking and vim.fn.getcmdwintype() == "" and vim.fn.reg_executing() == ""
end

---Open the command line once the user is in Normal mode and has paused typing.
---@param command string
function M.open(command)
  local ns = api.nvim_create_namespace("codecompanion.command_line")
  local quiet_since, told = vim.uv.now() - QUIET_MS, false
  vim.on_key(function()
    quiet_since = vim.uv.now()
  end, ns)
  local function try()
    vim.uv.update_time()
    if is_free() and vim.uv.now() - quiet_since >= QUIET_MS then
      vim.on_key(nil, ns)
      return type_in(command)
    end
    if not is_free() and not told then
      told = true
      say.line("The command line is ready; it opens once you are in Normal mode")
    end
    vim.defer_fn(try, 50)
  end
  try()
end

---@param request CodeCompanion.CommandLineRequest
local function ask(request)
  require("codecompanion.headless.headless_question").ask({
    purpose = "command_line",
    what = "the command line",
    options = require("codecompanion.config").options.interactions.cmd,
    text = M.question(request),
    on_reply = function(text)
      local command, problem = M.read(text)
      if not command then
        return say.line(problem --[[@as string]], severity.WARN)
      end
      M.open(command)
    end,
    on_begun = function()
      say.line({
        "Asking for a command line; :CodeCompanion cancel stops it",
        "Asking; :CodeCompanion cancel stops it",
        "Asking …",
      })
    end,
  })
end

---Run `:[range]CodeCompanionCmd {words}`; ask for the words if there are none.
---@param words string
---@param range? { [1]: integer, [2]: integer } 1-based lines
function M.run(words, range)
  local bufnr = api.nvim_get_current_buf()
  words = vim.trim(words)
  if words ~= "" then
    return ask({ words = words, bufnr = bufnr, range = range })
  end
  require("codecompanion.screen.choose").input({ prompt = "Describe the command: " }, function(text)
    text = vim.trim(text or "")
    if text ~= "" and api.nvim_buf_is_valid(bufnr) then
      ask({ words = text, bufnr = bufnr, range = range })
    end
  end)
end

return M
