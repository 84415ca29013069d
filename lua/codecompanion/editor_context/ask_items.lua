---Evaluates editor context items, immediately or within a time limit, and converts the results for the wire.
---User-defined functions run here; each of their failures is reported in one sentence.

local lines = require("codecompanion.editor_context.buffer_lines")

local M = {}

local TEXT_FIELDS = { "title", "path", "first", "whole", "language", "unsaved", "partial" }
local KINDS = {
  text = "string",
  title = "string",
  path = "string",
  first = "number",
  whole = "boolean",
  language = "string",
  unsaved = "boolean",
  partial = "boolean",
}
local EXPECTED = "expected a string, or a table with `text`"

---@param text string
---@return string
local function valid(text)
  return lines.join({ text })
end

---@param value any
---@return table? text
---@return string? problem
local function one_text(value)
  if type(value) == "string" then
    value = { text = value }
  elseif type(value) ~= "table" then
    return nil, ("its callback returned a %s; %s"):format(type(value), EXPECTED)
  end
  for field, kind in pairs(KINDS) do
    if value[field] ~= nil and type(value[field]) ~= kind then
      return nil, ("its callback returned %s as a %s; expected a %s"):format(field, type(value[field]), kind)
    end
  end
  if not value.text then
    return nil, "its callback returned a table without `text`; " .. EXPECTED
  elseif #value.text > lines.MAX_BYTES then
    local size, most = #value.text / 1e6, lines.MAX_BYTES / 1e6
    return nil, ("it is %.1f MB, over the limit of %d MB"):format(size, most)
  end
  local text = { text = valid(value.text) }
  for _, field in ipairs(TEXT_FIELDS) do
    local given = value[field]
    text[field] = type(given) == "string" and valid(given) or given
  end
  text.first = text.first and math.max(0, math.floor(text.first)) or nil
  return text
end

---Record the failure of a user-defined item.
---@param item CodeCompanion.EditorContext.Item
---@param problem string
---@return string
local function listed(item, problem)
  if item.is_own then
    require("codecompanion.config").failed(("interactions.chat.editor_context.%s: %s"):format(item.name, problem))
  end
  return problem
end

---Convert the result of a callback for the wire.
---@param mention CodeCompanion.EditorContext.Mention
---@param item CodeCompanion.EditorContext.Item
---@param content any
---@return table
function M.answer(mention, item, content)
  local written, argument = valid(mention.written), valid(mention.argument)
  local answer = { written = written, name = item.name, argument = argument, keep = item.keep }
  if content == nil or content == "" or (type(content) == "table" and next(content) == nil) then
    answer.nothing = "there is nothing to show"
    return answer
  end
  if type(content) == "table" and type(content.error) == "string" then
    answer.error = content.error
    return answer
  elseif type(content) == "table" and type(content.nothing) == "string" then
    answer.nothing = content.nothing
    return answer
  end
  answer.texts = {}
  local several = type(content) == "table" and vim.islist(content)
  for _, value in ipairs(several and content or { content }) do
    local text, problem = one_text(value)
    if not text then
      answer.error, answer.texts = listed(item, problem or ""), nil
      return answer
    end
    text.title = text.title or not text.path and item.description or nil
    if text.text:find("%S") then
      table.insert(answer.texts, text)
    end
  end
  if #answer.texts == 0 then
    answer.texts, answer.nothing = nil, "it is empty"
  end
  return answer
end

---Return the callback of an item; a path names a Lua file that returns a function or a table with `callback`.
---@param item CodeCompanion.EditorContext.Item
---@return function? callback
---@return string? problem
local function callback_of(item)
  local callback = item.callback
  if type(callback) ~= "string" then
    return callback
  end
  local chunk, problem = loadfile(vim.fs.normalize(callback))
  if not chunk then
    return nil, ("%s cannot be loaded: %s"):format(callback, problem)
  end
  local ok, loaded = pcall(chunk)
  if not ok then
    return nil, ("%s failed: %s"):format(callback, loaded)
  end
  loaded = type(loaded) == "table" and loaded.callback or loaded
  if type(loaded) ~= "function" then
    return nil, ("%s does not return a function"):format(callback)
  end
  return loaded
end

---@param item CodeCompanion.EditorContext.Item
---@param problem any
---@return string
local function failed(item, problem)
  return listed(item, "its callback failed: " .. vim.trim((tostring(problem):gsub("%s+", " "))):sub(1, 300))
end

---Evaluate an item, or only announce it if it is slow or is read by the host.
---@param item CodeCompanion.EditorContext.Item
---@param mention CodeCompanion.EditorContext.Mention
---@param at CodeCompanion.EditorContext.At
---@return table answer `requests.EditorItem`
function M.ask(item, mention, at)
  if mention.argument ~= "" and not item.argument then
    return { error = "it takes no argument" }
  elseif mention.argument == "" and item.needs_argument then
    return { error = ("it needs an argument: #{%s:%s}"):format(item.name, item.argument) }
  elseif item.by_host or item.async then
    local answer = M.answer(mention, item, nil)
    answer.comes, answer.nothing = item.by_host and "by_host" or "later", nil
    return answer
  end
  local callback, problem = callback_of(item)
  if not callback then
    return { error = listed(item, problem or "") }
  end
  local ok, content = pcall(callback, at)
  if not ok then
    return { error = failed(item, content) }
  end
  return M.answer(mention, item, content)
end

---@class CodeCompanion.EditorContext.Late
---@field item CodeCompanion.EditorContext.Item
---@field mention CodeCompanion.EditorContext.Mention
---@field at CodeCompanion.EditorContext.At

---Evaluate a slow item; `done` is called once, no later than the limit.
---@param one CodeCompanion.EditorContext.Late
---@param limit integer In milliseconds
---@param done fun(answer: table)
local function in_time(one, limit, done)
  local is_over, so_far = false, nil
  local timer
  local function finish(content)
    if not is_over then
      is_over = true
      timer:stop()
      timer:close()
      done(M.answer(one.mention, one.item, content))
    end
  end
  local function take(content, more)
    vim.schedule(function()
      if more then
        so_far = content
      else
        finish(content)
      end
    end)
  end
  timer = assert(vim.uv.new_timer())
  timer:start(limit, 0, function()
    vim.schedule(function()
      finish(so_far or { nothing = ("it took longer than %g s"):format(limit / 1000) })
    end)
  end)
  local callback, problem = callback_of(one.item)
  local ok, raised = true, nil
  if callback then
    ok, raised = pcall(callback, one.at, take)
  end
  if not callback or not ok then
    take({ error = problem and listed(one.item, problem) or failed(one.item, raised) })
  end
end

---Evaluate all slow items; `done` receives the results once, when the last item has finished or timed out.
---@param late CodeCompanion.EditorContext.Late[]
---@param limit integer In milliseconds, for items without a limit of their own
---@param done fun(answers: table[])
function M.later(late, limit, done)
  local answers, waiting = {}, #late
  for _, one in ipairs(late) do
    in_time(one, one.item.timeout or limit, function(answer)
      answers[#answers + 1] = answer
      waiting = waiting - 1
      if waiting == 0 then
        done(answers)
      end
    end)
  end
end

return M
