---Choices, all through `vim.ui.select`: stored chats, models, rules.

local session = require("codecompanion.chat.session")

local M = {}

---@param updated number|string Seconds since the epoch, or text
---@return string
local function when(updated)
  return type(updated) == "number" and tostring(os.date("%Y-%m-%d %H:%M", math.floor(updated))) or tostring(updated)
end

---@class CodeCompanion.StoredChoice
---@field method string What lists the items
---@field payload table
---@field empty string What is said when there are none
---@field prompt string
---@field kind string For `vim.ui.select`
---@field newest? boolean Take the first one without asking
---@field line fun(item: table): string How an item reads

---Ask the host for stored items and let the user choose one.
---@param choice CodeCompanion.StoredChoice
---@param callback fun(item: table)
local function choose_stored(choice, callback)
  local say = require("codecompanion.say")
  require("codecompanion.host").request(choice.method, choice.payload, function(err, items)
    if err then
      return say(err, vim.log.levels.ERROR)
    elseif #items == 0 then
      return say(choice.empty, vim.log.levels.WARN)
    elseif choice.newest then
      return callback(items[1])
    end
    vim.ui.select(items, { prompt = choice.prompt, kind = choice.kind, format_item = choice.line }, function(item)
      if item then
        callback(item)
      end
    end)
  end)
end

---Choose a stored chat, or take the newest one, and hand its id to `callback`.
---@param newest boolean
---@param callback fun(id: string)
function M.session(newest, callback)
  choose_stored({
    method = "list_sessions",
    payload = { cwd = "", limit = newest and 1 or 100 },
    empty = "there is no stored chat yet",
    newest = newest,
    prompt = "Resume a chat",
    kind = "codecompanion.session",
    line = function(item)
      local title = item.title ~= "" and item.title or "(untitled)"
      local owned = item.owned and " · open elsewhere" or ""
      return ("%s  %s · %d messages%s"):format(when(item.updated), title, item.messages, owned)
    end,
  }, function(item)
    callback(item.id)
  end)
end

---Choose a checkpoint of a chat (of any chat when not given), and hand its id to `callback`.
---@param of string Id of a chat, "" = all
---@param callback fun(id: string)
function M.checkpoint(of, callback)
  choose_stored({
    method = "list_checkpoints",
    payload = { of = of },
    empty = "there is no checkpoint yet",
    prompt = "Restore a chat from a checkpoint",
    kind = "codecompanion.checkpoint",
    line = function(item)
      local title = item.title ~= "" and item.title or item.chat
      local kind = item.kind:gsub("_", "-")
      return ("%s  %-14s %4d messages · %s"):format(when(item.time / 1000), kind, item.messages, title)
    end,
  }, function(item)
    callback(item.id)
  end)
end

---Choose a memory that a compaction wrote down, and hand its path to `callback`.
---@param callback fun(path: string)
function M.memory(callback)
  choose_stored({
    method = "list_memories",
    payload = vim.empty_dict(),
    empty = "nothing was remembered yet",
    prompt = "Memories",
    kind = "codecompanion.memory",
    line = function(item)
      return ("%s  %s%s"):format(when(item.time), item.title, item.private and " · private" or "")
    end,
  }, function(item)
    callback(item.path)
  end)
end

---Choose an adapter and a model for the chat.
---@param chat CodeCompanion.Chat
function M.model(chat)
  session.request(chat, "list_models", { adapter = "" }, function(result)
    local choices = {}
    for _, group in ipairs(result) do
      for _, model in ipairs(group.models or { group }) do
        local name = type(model) == "table" and model.name or model
        local window = type(model) == "table" and model.window or nil
        choices[#choices + 1] = { adapter = group.adapter, model = name, window = window }
      end
    end
    vim.ui.select(choices, {
      prompt = "Adapter and model",
      kind = "codecompanion.model",
      format_item = function(item)
        local window = (item.window or 0) > 0
            and (" · " .. require("codecompanion.chat.status").short_window(item.window))
          or ""
        local current = item.adapter == chat.adapter and item.model == chat.model and " · current" or ""
        return ("%s · %s%s%s"):format(item.adapter, item.model, window, current)
      end,
    }, function(item)
      if item then
        session.set_model(chat, item.adapter, item.model)
      end
    end)
  end)
end

---Choose the policy that manages the chat's context.
---@param chat CodeCompanion.Chat
function M.policy(chat)
  session.request(chat, "list_policies", vim.empty_dict(), function(policies)
    vim.ui.select(policies, {
      prompt = "Policy",
      kind = "codecompanion.policy",
      format_item = function(item)
        return ("%s%s · %s"):format(item.name, item.current and " (current)" or "", item.description)
      end,
    }, function(item)
      if item then
        session.notify(chat, "set_policy", { policy = item.name })
      end
    end)
  end)
end

---Choose a group of rules and add it to the chat.
---@param chat CodeCompanion.Chat
function M.rules(chat)
  local snapshot = require("codecompanion.editor").snapshot()
  session.request(chat, "list_rules", { snapshot = snapshot }, function(groups)
    vim.ui.select(groups, {
      prompt = "Rules",
      kind = "codecompanion.rules",
      format_item = function(item)
        local files = type(item.files) == "table" and #item.files or item.files
        local description = item.description and item.description ~= "" and (" · " .. item.description) or ""
        return ("%s%s · %s files"):format(item.name, description, files or 0)
      end,
    }, function(item)
      if item then
        session.notify(chat, "add_rules", { group = item.name })
      end
    end)
  end)
end

return M
