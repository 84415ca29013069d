---Renames and deletes stored chats, even if they are not open. The host decides, and answers with one sentence.

local choose = require("codecompanion.screen.choose")
local confirm = require("codecompanion.screen.confirm")
local host = require("codecompanion.host")
local say = require("codecompanion.say")

local M = {}

---@param verb string
---@param payload table
---@param done? fun()
---@param refuse? fun(reason: string)
local function ask(verb, payload, done, refuse)
  host.request(verb, payload, say.answer(done, refuse))
end

---Rename a chat; ask for the title if there is none.
---@param id string
---@param title? string
---@param opts? { present?: string, done?: fun(), refuse?: fun(reason: string) } `refuse`: called with the reason for a
---failure
function M.rename(id, title, opts)
  opts = opts or {}
  if title and vim.trim(title) ~= "" then
    return ask("rename_session", { chat = id, title = title }, opts.done, opts.refuse)
  end
  local options = { prompt = "Title of the chat: ", default = opts.present or "" }
  choose.input(options, function(given)
    if given and vim.trim(given) ~= "" then
      ask("rename_session", { chat = id, title = given }, opts.done)
    end
  end)
end

---Delete a stored chat permanently; ask first.
---@param item CodeCompanion.StoredChat
---@param done? fun() Called after the chat was deleted
---@param clear_of? fun(): CodeCompanion.Rows? Rows of the chat in a list
function M.delete(item, done, clear_of)
  local title = require("codecompanion.chat.state.chat_title").shown(item.title)
  local count = require("codecompanion.chat.lists.stored_lines").count(item)
  local question = ("Delete “%s” permanently?%s"):format(title, count and " " .. count or "")
  local answers = { { key = "y", label = "yes" }, { key = "n", label = "no" } }
  confirm.ask(question, answers, function(key)
    if key == "y" then
      ask("delete_session", { chat = item.id }, done)
    end
  end, clear_of)
end

return M
