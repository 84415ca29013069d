---Shows the progress of building a code index on the command line. Once an index exists, reports files written by the
---editor to the host, so that a question does not require scanning every file of a very large project.

local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

local GROUP = "codecompanion_index"
local is_following = false
---@type table<string, boolean> Folders whose index is being built, and whose vectors are being computed
local building, making = {}, {}

---@param text string
local function hint(text)
  if vim.api.nvim_get_mode().mode:sub(1, 1) ~= "c" then
    say.hint(text)
  end
end

---Report to the host each file that is written or found changed.
---@param notify fun(verb: string, payload: table)
---@param is_ready fun(): boolean
local function follow(notify, is_ready)
  if is_following then
    return
  end
  is_following = true
  vim.api.nvim_create_autocmd({ "BufWritePost", "FileChangedShellPost" }, {
    group = vim.api.nvim_create_augroup(GROUP, { clear = true }),
    callback = function(args)
      local path = vim.api.nvim_buf_get_name(args.buf)
      if vim.bo[args.buf].buftype == "" and path ~= "" and is_ready() then
        notify("files_changed", { paths = { path } })
      end
    end,
  })
end

---Return the progress in one sentence.
---@param event CodeCompanion.Event.IndexProgress
---@return string
function M.sentence(event)
  local name = vim.fn.fnamemodify(event.root, ":t")
  if event.phase == "building" then
    local far = event.total > 0 and (": %d of %s"):format(event.done, numbers.counted(event.total, "file")) or " …"
    return ("Indexing the code of %s%s"):format(name, far)
  elseif event.phase == "ready" then
    return ("The code of %s is indexed"):format(name)
  end
  return event.why ~= "" and event.why
    or ("The code of %s is not indexed yet; the first code search indexes it"):format(name)
end

---@param event CodeCompanion.Event.IndexProgress
local function show_vectors(event)
  local name = vim.fn.fnamemodify(event.root, ":t")
  if event.phase == "building" then
    making[event.root] = true
    hint(("Vectors for the code of %s: %d of %d"):format(name, event.done, event.total))
  elseif making[event.root] then
    making[event.root] = nil
    if event.phase == "ready" then
      hint(("The code of %s can be searched by meaning (%s)"):format(name, numbers.counted(event.done, "vector")))
    end
  end
end

---@param event CodeCompanion.Event.IndexProgress
---@param notify fun(verb: string, payload: table)
---@param is_ready fun(): boolean Whether the host is running
function M.show(event, notify, is_ready)
  if event.of_vectors then
    return show_vectors(event)
  end
  follow(notify, is_ready)
  if event.phase == "building" then
    building[event.root] = true
    hint(M.sentence(event))
  elseif building[event.root] then
    building[event.root] = nil
    if event.phase == "unusable" then
      say.once(M.sentence(event), severity.WARN)
    else
      hint(M.sentence(event))
    end
  end
end

return M
