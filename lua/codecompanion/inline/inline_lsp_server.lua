---Provides suggestions for Neovim's own |vim.lsp.inline_completion| (0.12), as a language server inside the editor that
---supports only `textDocument/inlineCompletion`.

local eligible = require("codecompanion.inline.eligible")
local place_of = require("codecompanion.inline.suggestion_place")
local source = require("codecompanion.inline.source")

local api = vim.api

local M = {}

local NAME = "codecompanion"
local INVOKED = 1 -- lsp.InlineCompletionTriggerKind
local MORE = 3
local GROUP = "codecompanion.complete.lsp"

---@type integer?
local client_id

---@param params table
---@param done fun(err: table?, result: any)
---@return fun() cancel
local function complete(params, done)
  local bufnr = vim.uri_to_bufnr(params.textDocument.uri)
  local manual = vim.tbl_get(params, "context", "triggerKind") == INVOKED
  local may_be_automatic = require("codecompanion.config").options.completion.trigger == "automatic"
  if eligible.moment_problem() or not (manual or may_be_automatic) then
    vim.schedule(function()
      done(nil, { items = {} })
    end)
    return function() end
  end
  local position = params.position -- in bytes, as the server's capabilities declare
  local place = place_of.at(bufnr, position.line, position.character)
  return source.ask({ place = place, manual = manual, count = manual and MORE or 1 }, function(suggestions)
    local items = vim.tbl_map(function(text)
      return { insertText = text, range = { start = position, ["end"] = position } }
    end, suggestions and suggestions.items or {})
    done(nil, { items = items })
  end)
end

---Return the in-process server that takes the place of an external process.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
local function server(dispatchers)
  local function leave(signal)
    vim.schedule(function()
      dispatchers.on_exit(0, signal)
    end)
  end
  local is_closing, last_id, cancels = false, 0, {}
  return {
    request = function(method, params, callback, notify_reply)
      last_id = last_id + 1
      local id = last_id
      local function done(err, result)
        cancels[id] = nil
        callback(err, result)
        if notify_reply then
          notify_reply(id)
        end
      end
      if method == "initialize" then
        done(nil, { capabilities = { inlineCompletionProvider = true, positionEncoding = "utf-8" } })
      elseif method == "textDocument/inlineCompletion" then
        cancels[id] = complete(params, done)
      else
        done(nil, vim.NIL)
      end
      return true, id
    end,
    notify = function(method, params)
      local cancel = method == "$/cancelRequest" and cancels[params.id]
      if cancel then
        cancels[params.id] = nil
        cancel()
      elseif method == "exit" then
        is_closing = true
        leave(0)
      end
      return true
    end,
    is_closing = function()
      return is_closing
    end,
    terminate = function()
      is_closing = true
      leave(15)
    end,
  }
end

---@param bufnr integer
local function attach(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) or eligible.buffer_problem(bufnr) then
    return
  end
  client_id = vim.lsp.start({ name = NAME, cmd = server, offset_encoding = "utf-8" }, { bufnr = bufnr, silent = true })
  if client_id then
    vim.lsp.inline_completion.enable(true, { bufnr = bufnr, client_id = client_id })
  end
end

---Offer suggestions in this buffer and in buffers opened later.
function M.start()
  api.nvim_create_autocmd({ "InsertEnter", "FileType" }, {
    group = api.nvim_create_augroup(GROUP, { clear = true }),
    desc = "Offer suggestions through vim.lsp.inline_completion",
    callback = function(args)
      attach(args.buf)
    end,
  })
  attach(api.nvim_get_current_buf())
end

function M.stop()
  api.nvim_create_augroup(GROUP, { clear = true })
  local client = client_id and vim.lsp.get_client_by_id(client_id)
  if client then
    vim.lsp.inline_completion.enable(false, { client_id = client_id })
    client:stop(true)
  end
  client_id = nil
end

return M
