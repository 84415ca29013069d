---Lets the user choose stored chats, models or rules with `vim.ui.select`.

local choose = require("codecompanion.screen.choose")
local host = require("codecompanion.host")
local loading = require("codecompanion.chat.lists.loading_list")
local model_name = require("codecompanion.text.model_name")
local numbers = require("codecompanion.text.numbers")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

---@param count integer
---@param noun string
---@return string
local function counted(count, noun)
  return numbers.counted(count, noun)
end

---@param updated number|string Seconds since the epoch, or text
---@return string
local function when(updated)
  return type(updated) == "number" and tostring(os.date("%Y-%m-%d %H:%M", math.floor(updated))) or tostring(updated)
end

---@class CodeCompanion.StoredChoice
---@field method string Verb of the request that lists the items
---@field payload table
---@field what string Name of the items while they load
---@field empty string Message if there are none
---@field prompt string
---@field kind string `kind` for `vim.ui.select`
---@field line fun(item: table): string Formats an item

---Request stored items from the host and let the user choose one.
---@param choice CodeCompanion.StoredChoice
---@param callback fun(item: table)
local function choose_stored(choice, callback)
  loading.list({ what = choice.what }, function(done)
    host.request(choice.method, choice.payload, function(err, items)
      done(not err and #items > 0 and items or nil)
      if err then
        say.line(err, severity.ERROR)
      elseif #items == 0 then
        say.line(choice.empty, severity.WARN)
      end
    end)
  end, function(items)
    choose.select(items, { prompt = choice.prompt, kind = choice.kind, format_item = choice.line }, function(item)
      if item then
        callback(item)
      end
    end)
  end)
end

---Choose a stored chat, or take the newest one, and pass its id to `callback`.
---@param newest boolean
---@param callback fun(id: string)
function M.session(newest, callback)
  local stored = require("codecompanion.chat.lists.resume_list")
  if newest then
    return stored.newest(callback)
  end
  stored.pick(callback)
end

---Choose a checkpoint of a chat (by default of any chat), and pass its id to `callback`.
---@param of string Chat id, "" = all
---@param callback fun(id: string)
function M.checkpoint(of, callback)
  choose_stored({
    method = "list_checkpoints",
    what = "checkpoints",
    payload = { of = of },
    empty = "No checkpoints yet",
    prompt = "Restore a chat from a checkpoint",
    kind = "codecompanion.checkpoint",
    line = function(item)
      local title = item.title ~= "" and item.title or item.chat
      local kind = item.kind:gsub("_", "-")
      return ("%s  %-14s %s · %s"):format(when(item.time / 1000), kind, counted(item.messages, "message"), title)
    end,
  }, function(item)
    callback(item.id)
  end)
end

---Return a handler for a list that cannot be loaded: the chat shows why.
---@param chat CodeCompanion.Chat
---@param done fun()
---@return fun(reason: string)
local function failed(chat, done)
  return function(reason)
    done()
    say.chat(chat, reason, severity.ERROR)
  end
end

---Request a list of the chat from the host and show it.
---@param chat CodeCompanion.Chat
---@param what string
---@param verb string
---@param payload table
---@param show fun(items: table[])
local function load(chat, what, verb, payload, show)
  loading.list({ what = what, key = chat.id }, function(done)
    session.request(chat, verb, payload, done, failed(chat, done))
  end, show)
end

---Return the first row of an adapter: its model is used if the chat's entry names none.
---@param rows table[]
---@param adapter string
---@return table?
local function first_of(rows, adapter)
  return vim.iter(rows):find(function(item)
    return item.adapter == adapter
  end)
end

local MAX_UNUSABLE = 5 -- adapters that cannot be used yet and are listed without opening them

---Return whether a row is an adapter that cannot be used yet, and is neither configured nor current.
---@param item table
---@return boolean
local function is_folded(item)
  return item.brief ~= nil and not item.is_first
end

---Return the rows of the list of models. In our own list, many adapters that cannot be used are one row; a user's
---picker lists all of them, because it filters as the user types.
---@param rows table[]
---@return table[] rows
local function with_folded(rows)
  local folded = vim.tbl_filter(is_folded, rows)
  if #folded <= MAX_UNUSABLE or not choose.is_builtin_select() then
    return rows
  end
  local shown = vim.tbl_filter(function(item)
    return not is_folded(item)
  end, rows)
  shown[#shown + 1] = { folded = #folded }
  return shown
end

---Choose an adapter and a model for the chat.
---@param chat CodeCompanion.Chat
function M.model(chat)
  local models = require("codecompanion.chat.lists.models")
  local function ask(done)
    models.list(chat, done, failed(chat, done))
  end
  loading.list({ what = "models", key = chat.id }, ask, function(choices)
    local rows = models.rows(choices, chat.adapter)
    local function is_current(item)
      local is_used = chat.model == "" and item == first_of(rows, chat.adapter) or item.model == chat.model
      return item.adapter == chat.adapter and (item.brief ~= nil or is_used)
    end
    local options = {
      prompt = "Choose a model",
      kind = "codecompanion.model",
      group_of = function(item)
        return is_folded(item) and "Not usable yet" or nil
      end,
      is_dim = function(item)
        return item.brief ~= nil or item.folded ~= nil
      end,
      is_current = is_current,
      format_item = function(item)
        local current = is_current(item) and " · current" or ""
        if item.folded then
          return ("%d more adapters need a key, a login or a server"):format(item.folded)
        elseif item.brief then
          return ("%s · %s%s"):format(item.adapter, item.brief, current)
        end
        local window = (item.window or 0) > 0 and (" · " .. numbers.short_window(item.window)) or ""
        local about = item.about and (" · " .. item.about) or ""
        return model_name(item.adapter, item.model) .. window .. about .. current
      end,
    }
    local function chosen(item)
      if item and item.folded then
        options.starts_at = is_folded
        choose.select(rows, options, chosen)
      elseif item and item.brief then
        models.try_again(chat, item, function(reason)
          say.chat(chat, reason, severity.ERROR)
        end)
      elseif item then
        models.use(chat, item.adapter, item.model)
      end
    end
    choose.select(with_folded(rows), options, chosen)
  end)
end

---The policies last listed by the host, cached because completion must not wait.
local policies_known = {}

---@param lead string
---@return string[]
function M.policy_names(lead)
  local chat = registry.current()
  if chat and chat.attached == "yes" then
    session.request(chat, "list_policies", vim.empty_dict(), function(policies)
      policies_known = vim.tbl_map(function(item)
        return item.name
      end, policies)
    end, function() end)
  end
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, policies_known)
end

---Choose the policy that manages the chat's context.
---@param chat CodeCompanion.Chat
function M.policy(chat)
  load(chat, "policies", "list_policies", vim.empty_dict(), function(policies)
    choose.select(policies, {
      prompt = "Policy",
      kind = "codecompanion.policy",
      format_item = function(item)
        return ("%s%s · %s"):format(item.name, item.current and " · current" or "", item.description)
      end,
      is_current = function(item)
        return item.current
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
  local snapshot = require("codecompanion.editor_context.snapshot").snapshot()
  load(chat, "rules", "list_rules", { snapshot = snapshot }, function(groups)
    choose.select(groups, {
      prompt = "Rules",
      kind = "codecompanion.rules",
      format_item = function(item)
        local files = type(item.files) == "table" and #item.files or item.files
        local description = item.description and item.description ~= "" and (" · " .. item.description) or ""
        return ("%s%s · %s"):format(item.name, description, counted(files or 0, "file"))
      end,
    }, function(item)
      if item then
        session.notify(chat, "add_rules", { group = item.name })
      end
    end)
  end)
end

return M
