---The question about a project's prompts: once for a project and for what its files say now.

local choose = require("codecompanion.screen.choose")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---All files of the project nobody was asked about, the wanted one first.
---@param wanted CodeCompanion.Prompt
---@return CodeCompanion.Prompt[]
local function asked_with(wanted)
  local found = { wanted }
  for _, prompt in ipairs(require("codecompanion.prompt_library").list()) do
    if prompt.state == "unasked" and prompt.path ~= wanted.path then
      found[#found + 1] = prompt
    end
  end
  return found
end

---@param prompts CodeCompanion.Prompt[]
---@param allowed boolean
---@param done fun()
local function keep(prompts, allowed, done)
  local files = vim.tbl_map(function(prompt)
    return { path = prompt.path, sha256 = prompt.sha256 }
  end, prompts)
  local payload = { cwd = vim.fn.getcwd(), files = files, allowed = allowed }
  require("codecompanion.host").request("permit_prompts", payload, function(err, sentence)
    if err then
      return say.line(err, severity.ERROR)
    elseif not allowed then
      say.line(sentence)
    end
    require("codecompanion.prompt_library").refresh(done)
  end)
end

---Ask whether a project's prompt may be used; `done` is called with it, its text included, when it may.
---@param prompt CodeCompanion.Prompt
---@param done fun(prompt: CodeCompanion.Prompt)
function M.ask(prompt, done)
  local prompts = asked_with(prompt)
  local labels = table.concat(
    vim.tbl_map(function(one)
      return one.label
    end, prompts),
    ", "
  )
  local all = #prompts == 1 and "Use it, as it is now" or ("Use these %d, as they are now"):format(#prompts)
  local instructing = vim.tbl_filter(function(one)
    return one.instructs
  end, prompts)
  if #instructing > 0 then
    all = all .. (#instructing == 1 and " · it instructs the whole chat" or " · they instruct the whole chat")
  end
  local answers = { all, "Look at " .. prompt.label, "Do not use it" }
  local title = ("This project brings prompts: %s"):format(labels)
  choose.select(answers, { prompt = title, kind = "codecompanion.permit" }, function(answer)
    if answer == answers[1] then
      keep(prompts, true, function()
        local fresh = require("codecompanion.prompt_library").find_file(prompt.path)
        if fresh and fresh.state == "allowed" then
          return done(fresh)
        end
        say.line(("%s has changed meanwhile; it is asked again"):format(prompt.label), severity.WARN)
      end)
    elseif answer == answers[2] then
      require("codecompanion.files.show").file(prompt.path)
    elseif answer == answers[3] then
      keep({ prompt }, false, function() end)
    end
  end)
end

return M
