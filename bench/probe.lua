---What both plugins are measured with, inside Neovim: when text was drawn, how long the editor and a stream stood
---still. Times are milliseconds of `vim.uv.hrtime()`.

local api = vim.api
local bench = { gaps = {} }
_G.bench = bench

function bench.now()
  return vim.uv.hrtime() / 1e6
end

---A timer of 1 ms: the longest gap between two ticks is how long the editor could not do anything.
local last, longest = bench.now(), 0
vim.uv.new_timer():start(0, 1, function()
  local now = bench.now()
  longest, last = math.max(longest, now - last), now
end)

---The longest gap since the last call.
function bench.longest_stall()
  local was = math.max(longest, bench.now() - last)
  longest, last = 0, bench.now()
  return was
end

---The moment `text` is drawn in a chat goes into `bench.drawn_at`.
---@param text string
function bench.watch(text)
  bench.watched, bench.found, bench.drawn_at, bench.watched_from = text, false, nil, bench.now()
end

---The longest time without a change of a buffer, from now on; `nil` = ask and end.
---@param buf integer
function bench.follow(buf)
  bench.gaps[buf] = { last = bench.now(), longest = 0, changes = 0 }
end

---@param buf integer
---@return { longest: number, changes: integer }
function bench.followed(buf)
  local gap = bench.gaps[buf]
  bench.gaps[buf] = nil
  return { longest = math.max(gap.longest, bench.now() - gap.last), changes = gap.changes }
end

local function on_lines(_, buf, _, first, _, new_last)
  local gap = bench.gaps[buf]
  if gap then
    local now = bench.now()
    gap.longest, gap.last, gap.changes = math.max(gap.longest, now - gap.last), now, gap.changes + 1
  end
  if bench.watched and not bench.found then
    for _, line in ipairs(api.nvim_buf_get_lines(buf, first, new_last, false)) do
      if line:find(bench.watched, 1, true) then
        bench.found = true
        return
      end
    end
  end
end

api.nvim_create_autocmd("FileType", {
  pattern = "codecompanion",
  callback = function(event)
    api.nvim_buf_attach(event.buf, false, { on_lines = on_lines })
  end,
})
api.nvim_set_decoration_provider(api.nvim_create_namespace("bench.drawn"), {
  on_end = function()
    if bench.found and not bench.drawn_at then
      bench.drawn_at, bench.watched = bench.now(), nil
    end
  end,
})

---Send a message that makes the server answer with `TOKEN-<number>`; `bench.blocked` is how long the call took.
---@param text string
---@param number string
function bench.ask(text, number)
  bench.watch("TOKEN-" .. number)
  bench.type(text .. " QUESTION-" .. number)
  bench.sent_at = bench.now()
  bench.submit()
  bench.blocked = bench.now() - bench.sent_at
end

---Modules that are loaded: of the plugin (and of plenary), and all.
function bench.lua_modules()
  local all, own = 0, 0
  for name in pairs(package.loaded) do
    all = all + 1
    own = own + ((name:find("^codecompanion") or name:find("^plenary")) and 1 or 0)
  end
  return { all = all, own = own }
end
