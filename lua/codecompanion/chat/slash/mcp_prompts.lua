---Offers the prompts of MCP servers as slash commands: `/mcp:server:prompt arguments`. The server's text is put into
---the input, so that the user reads it before sending: it is text from outside.

local buffer = require("codecompanion.chat.buffer.chat_text")
local draft = require("codecompanion.chat.wire.draft")
local host = require("codecompanion.host")
local known = require("codecompanion.host.mcp_servers")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

---Parse the text typed after the command: `name=text` by name, other words in order; the last parameter takes the rest.
---@param typed string
---@param names string[]
---@return table<string, string>
local function arguments_of(typed, names)
  local values, open = vim.empty_dict(), {}
  local rest = {}
  for word in typed:gmatch("%S+") do
    local name, text = word:match("^([%w_.-]+)=(.*)$")
    if name and vim.list_contains(names, name) then
      values[name] = text
    else
      rest[#rest + 1] = word
    end
  end
  for _, name in ipairs(names) do
    if values[name] == nil then
      open[#open + 1] = name
    end
  end
  for index, name in ipairs(open) do
    if index == #open and #rest > 0 then
      values[name] = table.concat(rest, " ")
    elseif #rest > 0 then
      values[name] = table.remove(rest, 1)
    end
  end
  return values
end

---@param text string
---@return string
local function lettered(text)
  return (text:gsub("[^%w_-]", "_"))
end

---@return CodeCompanion.SlashCommand[]
function M.commands()
  local found = {}
  for _, server in ipairs(known.servers) do
    for _, prompt in ipairs(server.prompts) do
      local names = prompt[2]
      found[#found + 1] = {
        name = ("mcp:%s:%s"):format(lettered(server.name), lettered(prompt[1])),
        description = ("Prompt of the MCP server %s"):format(server.name),
        argument = #names > 0 and known.arguments(prompt) or nil,
        multiline = #names > 0,
        run = function(chat, typed, refuse)
          local payload = { chat = chat.id, server = server.name, prompt = prompt[1], cwd = vim.fn.getcwd() }
          payload.arguments = arguments_of(typed, names)
          host.request("read_mcp", payload, function(err, result)
            if err then
              return refuse(err)
            end
            local label = ("The MCP server %s"):format(server.name)
            require("codecompanion.prompt_library.outside_text").text(result.text, label, function(text, notes)
              if buffer.input_text(chat) ~= "" then
                return refuse("The input is not empty, so the prompt was not inserted.")
              end
              for _, note in ipairs(notes) do
                say.chat(chat, note, severity.WARN)
              end
              draft.set(chat, text)
              view.cursor_to_input(chat)
            end, refuse)
          end)
        end,
      }
    end
  end
  return found
end

return M
