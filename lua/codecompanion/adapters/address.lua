---Where the requests of an adapter go: `url`, or `env.url` with the paths after it, in codecompanion.nvim's shapes.

local M = {}

---How the address of a reply ends, by kind of adapter.
local ENDS = {
  openai = { "/chat/completions" },
  openai_compatible = { "/chat/completions" },
  openai_responses = { "/responses" },
  anthropic = { "/v1/messages", "/messages" },
}

---Paths that may be said by themselves.
local PATHS = { chat_url = "chat_path", models_endpoint = "models_path", limits_endpoint = "limits_path" }

---@param base string
---@return boolean
local function is_versioned(base)
  return (base:match("^[^?]*") .. "/"):match("/v%d+%w*/") ~= nil
end

---@param settings CodeCompanion.AdapterSettings
---@param base string Without a slash at its end
local function set_chat_base(settings, base)
  if settings.chat_path:match("^/v1/") and (base:match("/v1$") or not is_versioned(base)) then
    -- A server whose other pages do not stand below the version.
    settings.base_url = base:gsub("/v1$", "")
    return
  end
  -- CodeCompanion's base ends before the version; one that ends with it (`…/v1`) is meant as it stands.
  local version = is_versioned(base) and "" or "/v1"
  local asks_listing = settings.limits_path == settings.models_path
  settings.base_url = base
  settings.chat_path = version .. "/chat/completions"
  settings.models_path = version .. "/models"
  settings.limits_path = asks_listing and settings.models_path or ""
end

---@param settings CodeCompanion.AdapterSettings
---@param base string
local function set_base(settings, base)
  base = base:gsub("/+$", "")
  if settings.kind == "anthropic" then
    settings.base_url = base:gsub("/v1$", "")
  elseif settings.kind == "openai_responses" then
    settings.base_url = is_versioned(base) and base or base .. "/v1"
  else
    set_chat_base(settings, base)
  end
end

---@param settings CodeCompanion.AdapterSettings
---@param url string The whole address of a reply
local function set_whole(settings, url)
  local address, query = url:match("^([^?]*)(.*)$")
  address = address:gsub("([^:])//+", "%1/"):gsub("/+$", "")
  for _, ending in ipairs(ENDS[settings.kind] or {}) do
    if vim.endswith(address, ending) then
      local base = address:sub(1, -#ending - 1)
      if ending == "/chat/completions" and not is_versioned(base) then
        settings.base_url, settings.chat_path = base, ending
      else
        set_base(settings, base)
      end
      -- The host puts the query after each path.
      settings.base_url = settings.base_url .. query
      return
    end
  end
  settings.base_url, settings.chat_path = address:match("^(%w+://[^/]+)(.*)$")
  settings.chat_path = settings.chat_path and settings.chat_path .. query
end

---@param self CodeCompanion.Resolving
function M.set(self)
  local entry, env, settings = self.entry, self.entry.env or {}, self.settings
  if entry.url and entry.url ~= "${url}${chat_url}" then
    set_whole(settings, self:interpolate(entry.url, "url"))
  end
  if env.url ~= nil then
    local base = self:env("url")
    if base then
      set_base(settings, base)
    end
  end
  for key, field in pairs(PATHS) do
    if env[key] ~= nil then
      settings[field] = self:env(key) or settings[field]
    end
  end
  local known = (settings.base_url or ""):match("^https?://[^/]") ~= nil
  if settings.kind ~= "offline" and not known then
    settings.base_url = settings.base_url or entry.url
    if self.touched then
      local key = env.url ~= nil and "env.url" or "url"
      self:problem(key, ("got %s; expected http://… or https://…"):format(vim.inspect(settings.base_url)))
    end
    -- The host refuses it when the adapter is used: no key goes to another address than the one that was meant.
  end
end

return M
