---A host without Python for tests of the chat buffer: records what is sent, lets the test push events and answers.
---
---    package.loaded["codecompanion.host"] = dofile(".../fake_host.lua")

local M = {
  ---@type { verb: string, payload: table, callback?: fun(err: string?, result: any) }[]
  requests = {},
  ---@type table<string, fun(payload: table): any>
  answers = {
    list_missing = function()
      return { text = "", chats = {} }
    end,
  },
}

---As `workspace/git_listing.py` lists them; the projects of these tests are harmless.
function M.answers.list_names(payload)
  local command = { "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z" }
  local listed = vim.system(command, { cwd = payload.cwd }):wait().stdout or ""
  return listed ~= "" and "\0" .. listed:sub(1, -2) or ""
end

local subscribers = {}

function M.notify(verb, payload)
  M.request(verb, payload, nil)
end

function M.request(verb, payload, callback)
  -- through JSON as on the real wire: what cannot be encoded fails here too
  local sent = vim.json.decode(vim.json.encode(payload))
  local request = { verb = verb, payload = sent, callback = callback, id = #M.requests + 1 }
  table.insert(M.requests, request)
  local answer = M.answers[verb]
  if answer and callback then
    vim.schedule(function()
      callback(nil, answer(sent))
    end)
  end
  return request
end

function M.ask(verb, payload, done)
  M.request(verb, payload, function(_, result)
    done(result)
  end)
end

function M.subscribe(subscriber)
  subscribers[subscriber] = true
  return function()
    subscribers[subscriber] = nil
  end
end

function M.status()
  return "ready", ""
end

---Hand events to the chat as the host does: one batch, decoded from JSON.
---@param json string
function M.on_events(json)
  for _, event in ipairs(vim.json.decode(json, { luanil = { object = true, array = true } })) do
    for subscriber in pairs(subscribers) do
      subscriber(event)
    end
  end
end

---@param verb string
---@return table[] payloads of the requests with this verb
function M.sent(verb)
  local found = {}
  for _, request in ipairs(M.requests) do
    if request.verb == verb then
      table.insert(found, request.payload)
    end
  end
  return found
end

return M
