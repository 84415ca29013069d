---Shows in a chat that it waits for the installation of the Python environment. The bar shows the step and its
---duration, or the buffer if there is no bar. Messages sent meanwhile wait in the host's queue.

local api = vim.api

local activity = require("codecompanion.chat.draw.activity")
local anchors = require("codecompanion.chat.buffer.anchors")
local fit = require("codecompanion.text.fit")
local registry = require("codecompanion.chat.state.open_chats")
local shown = require("codecompanion.chat.buffer.shown")
local state = require("codecompanion.chat.state.install_status")
local status = require("codecompanion.chat.state.chat_status")
local unsent = require("codecompanion.chat.wire.unsent_text")

local M = {}

local TICK_MS = 1000
local QUEUED = "Messages you send now are queued"
local ns = api.nvim_create_namespace("codecompanion.chat.installing")

---@type uv.uv_timer_t?
local timer

---Draw the notice below the input of an empty chat, which has no line above for the activity yet.
---@param chat CodeCompanion.Chat
local function draw_below(chat)
  api.nvim_buf_clear_namespace(chat.bufnr, ns, 0, -1)
  if not state.waits(chat) or anchors.position(chat, "header") > 0 then
    return
  end
  local what, how_far = state.text():match("^(.-): (.*)$")
  local texts = { "⋯ " .. what, "  " .. how_far, ("  %s."):format(QUEUED) }
  if shown.shows_meter(chat) then
    local why, until_when = "", "the Python packages are installed"
    if state.progress().again then
      why = table.concat(require("codecompanion.install").reasons(), " ")
      why = (why ~= "" and why or "This version of the plugin needs different Python packages.") .. " "
      until_when = "they are installed"
    end
    local sentence = ("⋯ %s%s until %s, usually in less than a minute."):format(why, QUEUED, until_when)
    texts = fit.wrap(sentence, fit.narrowest(chat))
  end
  local lines = { { { "", "CodeCompanionHint" } } }
  for _, text in ipairs(texts) do
    table.insert(lines, { { text, "CodeCompanionActivity" } })
  end
  api.nvim_buf_set_extmark(chat.bufnr, ns, api.nvim_buf_line_count(chat.bufnr) - 1, 0, { virt_lines = lines })
end

local function stop()
  if timer then
    timer:stop()
    timer:close()
    timer = nil
  end
end

---Return whether a chat on the screen shows the progress.
---@return boolean
local function is_visible()
  return vim.iter(registry.list()):any(function(chat)
    return chat.attached == "opening" and #shown.visible(chat) > 0
  end)
end

local function draw()
  for _, chat in ipairs(registry.list()) do
    if chat.attached == "opening" and api.nvim_buf_is_loaded(chat.bufnr) then
      status.publish(chat)
      activity.draw(chat)
      if #chat.outgoing > 0 then
        require("codecompanion.chat.wire.outgoing").mark_all(chat)
      end
      draw_below(chat)
    end
  end
  if is_visible() then
    require("codecompanion.install").clear_line()
  end
end

---Update the chats after progress or the end of the installation.
local function changed()
  if not state.progress() then
    stop()
  elseif not timer then
    timer = assert(vim.uv.new_timer())
    timer:start(TICK_MS, TICK_MS, vim.schedule_wrap(draw))
  end
  draw()
end

---Follow the installer's progress.
function M.setup()
  vim.schedule(function() -- not before the first redraw; the host, which may install, starts after this
    local install = require("codecompanion.install")
    install.is_on_screen = is_visible
    install.watch(changed)
    if state.progress() then
      changed()
    end
  end)
  api.nvim_create_autocmd("VimLeavePre", {
    group = api.nvim_create_augroup("codecompanion.chat.installing", {}),
    desc = "Keep unsent messages",
    callback = function()
      unsent.keep(registry.list())
    end,
  })
end

return M
