---Plays a recorded session through the real chat, for `codecompanion demo` (headless) and `make chat`.
---
---The user's side comes from a plan (JSON), the model's side from the offline adapter's recording; everything between,
---from the input region to the SQLite file, is the plugin as it is. What happens is written as one JSON object a line.

local M = {}

local OPEN_MS, TURN_MS = 30000, 600000

---@param path string
---@return table
local function read_json(path)
  local file = assert(io.open(path, "r"))
  local text = file:read("*a")
  file:close()
  return vim.json.decode(text)
end

---The rows of the screen as text.
---@return string[]
local function screen()
  vim.cmd.redraw({ bang = true })
  local rows = {}
  for row = 1, vim.o.lines do
    local cells = {}
    for column = 1, vim.o.columns do
      cells[column] = vim.fn.screenstring(row, column)
    end
    rows[row] = (table.concat(cells):gsub("%s+$", ""))
  end
  return rows
end

---@param chat CodeCompanion.Chat
---@param done fun(): boolean
---@param limit_ms integer
---@param what string
local function wait(chat, done, limit_ms, what)
  if not vim.wait(limit_ms, done, 10) then
    error(
      ("the demo waited too long for %s (state: %s)"):format(what, vim.inspect(vim.b[chat.bufnr].codecompanion_chat))
    )
  end
end

---Play the plan `{ steps: { {attach, path} | {say} }[], out: string }` and leave Neovim.
---@param path string
function M.run(path)
  local plan = read_json(path)
  local out = assert(io.open(plan.out, "w"))
  local function tell(kind, data)
    out:write(vim.json.encode({ kind = kind, data = data }), "\n")
    out:flush()
  end
  local ok, problem = xpcall(M.play, debug.traceback, plan.steps, tell)
  if not ok then
    tell("failed", { error = problem })
  end
  out:close()
  vim.cmd(ok and "qall!" or "cquit!")
end

---@param steps table[]
---@param tell fun(kind: string, data: table)
function M.play(steps, tell)
  local session = require("codecompanion.chat.state.session")
  local ended, opened = 0, false
  vim.api.nvim_create_autocmd("User", {
    pattern = { "CodeCompanionChat*" },
    callback = function(args)
      opened = opened or args.match == "CodeCompanionChatOpened"
      if args.match == "CodeCompanionChatDone" or args.match == "CodeCompanionChatStopped" then
        ended = ended + 1
      end
      tell(args.match:gsub("CodeCompanionChat", ""):lower(), args.data)
    end,
  })
  local unsubscribe = require("codecompanion.host").subscribe(function(event)
    if event.type == "request_failed" then
      tell("failed", { error = event.error })
    end
  end)
  local chat = require("codecompanion").chat()
  wait(chat, function()
    return opened
  end, OPEN_MS, "the host")
  for _, step in ipairs(steps) do
    if step.attach then
      session.notify(chat, "attach", { kind = step.attach, path = step.path })
    else
      local before = ended
      require("codecompanion.chat.wire.draft").set(chat, step.say)
      require("codecompanion.chat.ui.submit").send(chat)
      wait(chat, function()
        return ended > before
      end, TURN_MS, "a reply")
    end
  end
  unsubscribe()
  vim.cmd.normal({ "G", bang = true })
  tell("screen", { rows = screen() })
  if vim.fn.search("Summary · ", "bw") > 0 then
    vim.cmd.normal({ "zz", bang = true })
    tell("screen", { rows = screen() })
  end
end

return M
