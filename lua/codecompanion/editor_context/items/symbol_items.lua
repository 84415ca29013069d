---Describes the symbol under the cursor with information from language servers: kind, definition and references.

local api = vim.api
local lines = require("codecompanion.editor_context.buffer_lines")
local place = require("codecompanion.editor_context.working_window")

local MAX_REFERENCES, MAX_DEFINITIONS, DEFINITION_LINES = 50, 3, 40
local METHODS = {
  hover = "textDocument/hover",
  definition = "textDocument/definition",
  references = "textDocument/references",
}
local ORDER = { "hover", "definition", "references" }
local IS_OLD = vim.fn.has("nvim-0.11") == 0

---@param client vim.lsp.Client
---@param method string
---@param bufnr integer
---@return boolean
local function supports(client, method, bufnr)
  if IS_OLD then
    return client.supports_method(method, { bufnr = bufnr })
  end
  return client:supports_method(method, bufnr)
end

---@param client vim.lsp.Client
---@param method string
---@param params table
---@param bufnr integer
---@param handler fun(err: any, result: any)
---@return boolean sent
local function request(client, method, params, bufnr, handler)
  local sent
  if IS_OLD then
    sent = client.request(method, params, handler, bufnr)
  else
    sent = client:request(method, params, handler, bufnr)
  end
  return sent == true
end

---Return the position of the cursor in the client's offset encoding.
---@param at CodeCompanion.EditorContext.At
---@param client vim.lsp.Client
---@return table
local function params_of(at, client)
  local row, col = at.cursor[1] - 1, at.cursor[2]
  local line = api.nvim_buf_get_lines(at.bufnr, row, row + 1, false)[1] or ""
  local encoding, character = client.offset_encoding or "utf-16", math.min(col, #line)
  if encoding ~= "utf-8" then
    local before = line:sub(1, character)
    local ok, count = pcall(function()
      if IS_OLD then
        local utf32, utf16 = vim.str_utfindex(before)
        return encoding == "utf-16" and utf16 or utf32
      end
      return vim.str_utfindex(before, encoding)
    end)
    character = ok and count or character
  end
  return {
    textDocument = { uri = vim.uri_from_bufnr(at.bufnr) },
    position = { line = row, character = character },
    context = { includeDeclaration = false },
  }
end

---Return the locations of a result, which servers return in several forms.
---@param result any
---@return { path: string, range: table }[]
local function locations(result)
  if type(result) ~= "table" then
    return {}
  end
  local found = {}
  for _, one in ipairs(vim.islist(result) and result or { result }) do
    local uri = type(one) == "table" and (one.uri or one.targetUri)
    local range = type(one) == "table" and (one.targetRange or one.range)
    if type(uri) == "string" and type(range) == "table" and vim.tbl_get(range, "start", "line") then
      local ok, path = pcall(vim.uri_to_fname, uri)
      found[#found + 1] = ok and { path = path, range = range } or nil
    end
  end
  return found
end

---Return lines of a file, from its buffer if it is loaded.
---@param path string
---@param first integer 1-based
---@param count integer
---@return string[]
local function read(path, first, count)
  local bufnr = require("codecompanion.system.literal_paths").buffer_of(path)
  if bufnr > 0 and api.nvim_buf_is_loaded(bufnr) then
    return api.nvim_buf_get_lines(bufnr, first - 1, first - 1 + count, false)
  end
  local stat = (vim.uv or vim.loop).fs_stat(path)
  if not stat or stat.type ~= "file" or stat.size > lines.MAX_BYTES then
    return {}
  end
  local ok, all = pcall(vim.fn.readfile, path, "", first - 1 + count)
  return ok and vim.list_slice(all, first) or {}
end

---@param found { path: string, range: table }[]
---@param symbol string
---@return CodeCompanion.EditorContext.Text[]
local function definitions(found, symbol)
  local texts = {}
  for index, one in ipairs(found) do
    if index > MAX_DEFINITIONS then
      local more = {}
      for _, other in ipairs(vim.list_slice(found, index, MAX_DEFINITIONS + MAX_REFERENCES)) do
        more[#more + 1] = ("%s:%d"):format(place.short(other.path), other.range.start.line + 1)
      end
      local rest = #found - MAX_DEFINITIONS - #more
      more[#more + 1] = rest > 0 and ("… %d more"):format(rest) or nil
      texts[#texts + 1] = { text = lines.join(more), title = ("other definitions of %s"):format(symbol) }
      break
    end
    local first = one.range.start.line + 1
    local last = vim.tbl_get(one.range, "end", "line") or one.range.start.line
    local count = last > one.range.start.line and math.min(last + 2 - first, DEFINITION_LINES) or DEFINITION_LINES / 2
    local code = read(one.path, first, count)
    if #code > 0 then
      texts[#texts + 1] = {
        text = lines.join(code),
        title = ("definition of %s,"):format(symbol),
        path = one.path,
        first = first,
        language = vim.filetype.match({ filename = one.path }) or "",
      }
    end
  end
  return texts
end

---@param found { path: string, range: table }[]
---@param symbol string
---@return CodeCompanion.EditorContext.Text?
local function references(found, symbol)
  local list = {}
  for index, one in ipairs(found) do
    if index > MAX_REFERENCES then
      list[#list + 1] = ("… %d more"):format(#found - MAX_REFERENCES)
      break
    end
    local line = one.range.start.line + 1
    local code = vim.trim(read(one.path, line, 1)[1] or ""):sub(1, 200)
    list[#list + 1] = ("%s:%d: %s"):format(place.short(one.path), line, code)
  end
  return #list > 0 and { text = lines.join(list), title = ("uses of %s"):format(symbol) } or nil
end

---@param result any
---@return string
local function hover_text(result)
  local contents = type(result) == "table" and result.contents
  if not contents then
    return ""
  end
  local ok, converted = pcall(vim.lsp.util.convert_input_to_markdown_lines, contents)
  return ok and vim.trim(table.concat(converted, "\n")) or ""
end

---@param answers table<string, any[]> Results by request
---@param symbol string
---@return CodeCompanion.EditorContext.Text[]
local function texts_of(answers, symbol)
  local texts, places, uses = {}, {}, {}
  for _, result in ipairs(answers.hover) do
    local text = hover_text(result)
    if text ~= "" then
      local said = lines.join(vim.split(text, "\n", { plain = true }))
      texts[#texts + 1] = { text = said, title = ("documentation of %s"):format(symbol), language = "markdown" }
    end
  end
  for _, result in ipairs(answers.definition) do
    vim.list_extend(places, locations(result))
  end
  for _, result in ipairs(answers.references) do
    vim.list_extend(uses, locations(result))
  end
  vim.list_extend(texts, definitions(places, symbol))
  texts[#texts + 1] = references(uses, symbol)
  return texts
end

---@param at CodeCompanion.EditorContext.At
---@return string
local function symbol_at(at)
  local line = api.nvim_buf_get_lines(at.bufnr, at.cursor[1] - 1, at.cursor[1], false)[1] or ""
  local from = vim.fn.match(line:sub(1, at.cursor[2] + 1), "\\k*$")
  local word = vim.fn.matchstr(line:sub(from + 1), "^\\k\\+")
  return word
end

---Return the requests that the servers of a buffer support.
---@param bufnr integer
---@return { client: vim.lsp.Client, what: string }[]
local function questions(bufnr)
  local found = {}
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = bufnr })) do
    for _, what in ipairs(ORDER) do
      local ok, can = pcall(supports, client, METHODS[what], bufnr)
      if ok and can then
        found[#found + 1] = { client = client, what = what }
      end
    end
  end
  return found
end

---Ask all servers of a buffer; `done` receives the results so far after each response.
---@param at CodeCompanion.EditorContext.At
---@param done fun(answers: table<string, any[]>, waiting: integer)
local function ask(at, done)
  local answers, asked = { hover = {}, definition = {}, references = {} }, questions(at.bufnr)
  local waiting = #asked -- count all of them before the first one responds
  for _, one in ipairs(asked) do
    local answered = false
    local function handler(_, result)
      if not answered then
        answered, waiting = true, waiting - 1
        table.insert(answers[one.what], result)
        done(answers, waiting)
      end
    end
    if not request(one.client, METHODS[one.what], params_of(at, one.client), at.bufnr, handler) then
      handler(nil, nil)
    end
  end
  if #asked == 0 then
    done(answers, 0)
  end
end

---@type CodeCompanion.EditorContext.Item[]
return {
  {
    name = "lsp",
    description = "The symbol under the cursor: its documentation, definition and uses",
    async = true,
    timeout = 5000,
    callback = function(at, done)
      if not at.bufnr then
        return done({ nothing = "no file is open" })
      end
      if #vim.lsp.get_clients({ bufnr = at.bufnr }) == 0 then
        return done({ nothing = ("no language server is attached to %s"):format(lines.name(at.bufnr)) })
      end
      local symbol = symbol_at(at)
      if symbol == "" then
        return done({ nothing = ("the cursor in %s is not on a symbol"):format(lines.name(at.bufnr)) })
      end
      local nothing = ("the language server has no information about %s"):format(symbol)
      ask(at, function(answers, waiting)
        local texts = texts_of(answers, symbol)
        done(#texts > 0 and texts or { nothing = nothing }, waiting > 0)
      end)
    end,
  },
}
