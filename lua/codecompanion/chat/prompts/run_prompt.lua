---Runs a prompt: asks for its parameters, builds its text, and puts it into a chat or sends it.
---
---A project's prompt is never sent automatically: its text is put into the input, and the user presses <CR>.

local api = vim.api
local attaching = require("codecompanion.chat.sources.attach_to_chat")
local draft = require("codecompanion.chat.wire.draft")
local message = require("codecompanion.chat.wire.send_message")
local parameters = require("codecompanion.chat.prompts.prompt_parameters")
local say = require("codecompanion.say")
local send_code = require("codecompanion.editor_context.send_code")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local texts = require("codecompanion.prompt_library.prompt_text")

local M = {}

---@class CodeCompanion.PromptUse
---@field context CodeCompanion.PromptContext
---@field argument string Text typed after its name
---@field chat? CodeCompanion.Chat Target; nil means a new chat
---@field refuse fun(reason: string)
---@field edit? fun(text: string, context: CodeCompanion.PromptContext) Runs it as an edit in place, where possible

---@param prompt CodeCompanion.Prompt
---@return CodeCompanion.Chat
local function new_chat(prompt)
  local life = require("codecompanion.chat.life")
  local has_adapter = prompt.adapter ~= ""
  local chosen = has_adapter and { adapter = prompt.adapter, model = prompt.model ~= "" and prompt.model or nil } or {}
  local chat = life.open(vim.tbl_extend("force", { reuse = not has_adapter }, chosen))
  session.attach(chat, chosen) -- before anything opens the chat without the options
  return chat
end

---Attach the files and rules of a prompt.
---@param prompt CodeCompanion.Prompt
---@param chat CodeCompanion.Chat
local function attach(prompt, chat)
  for _, path in ipairs(prompt.files) do
    local whole = path:find("^[/~]") and path or vim.fn.getcwd() .. "/" .. path
    attaching.attach(chat, { kind = "file", path = vim.fs.normalize(whole) }, function(reason)
      say.chat(chat, reason, severity.WARN)
    end)
  end
  for _, group in ipairs(prompt.rules) do
    session.command(chat, "add_rules", { group = group }, function(reason)
      say.chat(chat, reason, severity.WARN)
    end)
  end
end

---@param prompt CodeCompanion.Prompt
---@param chat CodeCompanion.Chat
---@param text string
---@param notes string[] Further notes to show
local function hand_over(prompt, chat, text, notes)
  for _, note in ipairs(vim.list_extend(vim.list_extend({}, prompt.notes), notes)) do
    say.chat(chat, note, severity.WARN)
  end
  if prompt.auto_submit then
    require("codecompanion.chat.buffer.chat_text").ensure_input(chat)
    return message.send(chat, text)
  end
  draft.prepend(chat, text)
  if api.nvim_get_current_buf() == chat.bufnr then
    require("codecompanion.chat.buffer.scroll").cursor_to_input(chat)
  end
end

---@param prompt CodeCompanion.Prompt
---@param use CodeCompanion.PromptUse
---@param text string
---@param system string
---@param notes string[]
local function put(prompt, use, text, system, notes)
  if prompt.interaction == "inline" and use.edit and use.context.bufnr ~= 0 then
    return use.edit(system == "" and text or system .. "\n\n" .. text, use.context)
  end
  local chat = use.chat or new_chat(prompt)
  if prompt.interaction == "inline" then
    local notice = "The prompt %s edits in place; in a chat it is sent as a message."
    say.chat(chat, notice:format(prompt.name), severity.INFO)
  end
  attach(prompt, chat)
  if system == "" then
    return hand_over(prompt, chat, text, notes)
  end
  -- Pinned: it applies to the whole chat, survives a compaction, and can be removed.
  local source = prompt.origin == "project" and prompt.label or ""
  session.request(chat, "pin", { text = system, source = source, again = true }, function(sentence)
    if source ~= "" then
      say.chat(chat, sentence .. " Applies to the whole chat; /unpin removes it.", severity.INFO)
    end
    hand_over(prompt, chat, text, notes)
  end, function(reason)
    say.chat(chat, ("The prompt %s was not used: %s"):format(prompt.name, reason), severity.WARN)
  end)
end

---@param prompt CodeCompanion.Prompt
---@param use CodeCompanion.PromptUse
---@param given { parameters: table<string, string>, argument: string, more: string }
local function make(prompt, use, given)
  local is_allowed, context = send_code.is_allowed(), use.context
  if not is_allowed then -- user-defined functions receive no code to put into their text
    context = vim.tbl_extend("force", context, { lines = {}, code = "" })
  end
  local ok, text, system, sends_code = pcall(texts.make, prompt, context, given)
  if not ok then
    local why = ("The prompt %s failed: %s"):format(prompt.name, text)
    require("codecompanion.config").failed(why)
    return use.refuse(why)
  elseif not is_allowed and (sends_code or prompt.interaction == "inline") then
    return use.refuse(("The prompt %s was not used: it sends code, and %s."):format(prompt.name, send_code.WHY))
  elseif vim.trim(text) == "" then
    return use.refuse(("The prompt %s is empty here; nothing was sent."):format(prompt.name))
  elseif prompt.origin ~= "project" then
    return put(prompt, use, text, system, {})
  end
  require("codecompanion.prompt_library.outside_text").text(text, prompt.label, function(tamed, notes)
    put(prompt, use, tamed, system, notes)
  end, use.refuse)
end

---@param prompt CodeCompanion.Prompt
---@param use CodeCompanion.PromptUse
---@param values table<string, string>
local function ask_more(prompt, use, values)
  parameters.ask(prompt, values, function(answers)
    if not answers then
      return
    end
    local given = { parameters = answers, argument = use.argument, more = "" }
    if prompt.user_prompt == "" or use.argument ~= "" then
      return make(prompt, use, given)
    end
    require("codecompanion.screen.choose").input({ prompt = prompt.user_prompt .. " " }, function(more)
      if more then
        given.more = vim.trim(more)
        make(prompt, use, given)
      end
    end)
  end)
end

---Use a prompt.
---@param prompt CodeCompanion.Prompt
---@param use CodeCompanion.PromptUse
function M.run(prompt, use)
  if prompt.state ~= "allowed" then
    local library = require("codecompanion.prompt_library")
    return library.refresh(function()
      local now = library.find_file(prompt.path)
      if now and now.state == "allowed" then
        return M.run(now, use)
      end
      require("codecompanion.say").line(prompt.label .. " is not trusted; review it with :CodeCompanion trust")
      require("codecompanion.pages.trust_page").open()
    end)
  end
  if prompt.run then
    return prompt.run(use.context)
  end
  local values, problem = parameters.read(prompt, use.argument)
  if problem then
    return use.refuse(problem)
  end
  ask_more(prompt, use, values)
end

---Run the prompt with this name, once the files are read.
---@param name string Alias or name
---@param use CodeCompanion.PromptUse
function M.by_name(name, use)
  local library = require("codecompanion.prompt_library")
  library.refresh_if_stale(function()
    local prompt = library.find(name)
    if prompt then
      return M.run(prompt, use)
    end
    local aliases = vim.tbl_map(function(one)
      return one.alias
    end, library.list())
    local near = require("codecompanion.values.nearest").word(name, aliases)
    local advice = near and ("did you mean /%s?"):format(near) or ":CodeCompanionActions lists them"
    use.refuse(("No prompt /%s; %s"):format(name, advice))
  end)
end

return M
