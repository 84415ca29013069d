---Finds out which servers on this machine or network respond, and lists their models. Queries all of them at once,
---without blocking.

local uv = vim.uv

local M = {}

M.LIMIT_MS = 300
local MAX_BYTES = 1000000

---@class CodeCompanion.ServerAddress
---@field host string
---@field port integer
---@field path string Path of the model list

---Return the address of a server's model list, or nil if it cannot be requested from here (`https`, no address).
---@param address string As written: `http://localhost:8080`, or a value of OLLAMA_HOST (`0.0.0.0`, `box:1`)
---@param default_port integer Used when the address has no port
---@return CodeCompanion.ServerAddress?
function M.parse(address, default_port)
  local rest = address:match("^http://(.*)$") or (not address:find("://", 1, true) and address) or nil
  local place, path = (rest or ""):match("^([^/]+)(.*)$")
  if not place then
    return nil
  end
  local host, port = place:match("^%[(.+)%]:?(%d*)$")
  if not host then
    host, port = place:match("^([^:]+):?(%d*)$")
  end
  if not host then
    return nil
  end
  local base = path:gsub("/+$", ""):gsub("/v1$", ""):gsub("/v1/chat/completions$", "")
  return {
    host = host == "0.0.0.0" and "127.0.0.1" or host,
    port = tonumber(port) or default_port,
    path = base .. "/v1/models",
  }
end

---Return the model names in a response, or nil if the response is not a model list.
---@param text string The whole HTTP response
---@return string[]? names
---@return boolean? is_loading The server responds but has not loaded a model yet
function M.models(text)
  local status, body = text:match("^HTTP/1%.%d (%d+).-\r\n\r\n(.*)$")
  if status ~= "200" then
    return nil, status == "503" and body:lower():find("loading", 1, true) ~= nil
  end
  local ok, answer = pcall(vim.json.decode, body, { luanil = { object = true, array = true } })
  if not ok or type(answer) ~= "table" then
    return nil
  end
  local names = {}
  for _, entry in ipairs(type(answer.data) == "table" and answer.data or {}) do
    if type(entry) == "table" and type(entry.id) == "string" then
      names[#names + 1] = entry.id
    end
  end
  return names
end

---@param address CodeCompanion.ServerAddress
---@param done fun(text: string) Called once, with the data received
local function get(address, done)
  local socket, parts, size, over = assert(uv.new_tcp()), {}, 0, false
  local function finish()
    if not over then
      over = true
      if not socket:is_closing() then
        socket:close()
      end
      done(table.concat(parts))
    end
  end
  local function ask(failed)
    if failed or over then
      return finish()
    end
    -- With HTTP/1.0 the response is not chunked and ends when the connection closes.
    socket:write(("GET %s HTTP/1.0\r\nHost: %s\r\nAccept: application/json\r\n\r\n"):format(address.path, address.host))
    socket:read_start(function(problem, data)
      if problem or not data then
        return finish()
      end
      parts[#parts + 1], size = data, size + #data
      if size > MAX_BYTES then
        finish()
      end
    end)
  end
  local function connect(ip)
    local ok, request = pcall(socket.connect, socket, ip, address.port, ask)
    if not ok or not request then
      finish()
    end
  end
  if address.host:match("^[%d.]+$") or address.host:find(":", 1, true) then
    connect(address.host)
  else
    uv.getaddrinfo(address.host, nil, { socktype = "stream", family = "inet" }, function(problem, found)
      if problem or over or not found or not found[1] then
        return finish()
      end
      connect(found[1].addr)
    end)
  end
  return finish
end

---Ask servers for their models.
---@param addresses table<string, CodeCompanion.ServerAddress> By name
---`done` is called within `LIMIT_MS`, with the models of the servers that responded, and the servers that are still
---loading theirs.
---@param done fun(models: table<string, string[]>, loading: table<string, boolean>)
function M.ask(addresses, done)
  local found, waiting, over, stops = {}, vim.tbl_count(addresses), false, {}
  local timer = assert(uv.new_timer())
  local finish = vim.schedule_wrap(function()
    if over then
      return
    end
    over = true
    timer:close()
    for _, stop in ipairs(stops) do
      stop()
    end
    local models, loading = {}, {}
    for name, text in pairs(found) do
      models[name], loading[name] = M.models(text)
    end
    done(models, loading)
  end)
  timer:start(M.LIMIT_MS, 0, finish)
  if waiting == 0 then
    return finish()
  end
  for name, address in pairs(addresses) do
    stops[#stops + 1] = get(address, function(text)
      found[name], waiting = text, waiting - 1
      if waiting == 0 then
        finish()
      end
    end)
  end
end

return M
