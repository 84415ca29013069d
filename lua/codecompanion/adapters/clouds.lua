---Clouds whose credentials are found by an official client (`transport = "sdk"`). Checks whether credential files and
---variables exist, without reading them, and names the remedy if there are none.

---@class CodeCompanion.Cloud
---@field whose string Noun phrase for messages, such as "AWS credentials"
---@field variables string[] Any one of these is enough
---@field files fun(): string[] Any one of these is also enough
---@field needs string Remedy, in a few words

---@param ... string Environment variables
---@return string path Value of the first variable that is set, or "" for none
local function first(...)
  for _, name in ipairs({ ... }) do
    if (vim.env[name] or "") ~= "" then
      return vim.env[name]
    end
  end
  return ""
end

---@return string
local function home()
  return first("HOME", "USERPROFILE")
end

---@type CodeCompanion.Cloud
local aws = {
  whose = "AWS credentials",
  variables = {
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
  },
  files = function()
    local folder = home() .. "/.aws"
    return {
      first("AWS_SHARED_CREDENTIALS_FILE"),
      first("AWS_CONFIG_FILE"),
      folder .. "/credentials",
      folder .. "/config",
    }
  end,
  needs = "needs AWS credentials: aws sso login or aws configure",
}

---@type CodeCompanion.Cloud
local google = {
  whose = "Google credentials",
  variables = {},
  files = function()
    local windows = first("APPDATA")
    local folder = windows ~= "" and windows .. "/gcloud" or home() .. "/.config/gcloud"
    local config = first("CLOUDSDK_CONFIG")
    local name = "/application_default_credentials.json"
    return { first("GOOGLE_APPLICATION_CREDENTIALS"), (config ~= "" and config or folder) .. name }
  end,
  needs = "needs Google credentials: gcloud auth application-default login",
}

---@type CodeCompanion.Cloud
local azure = {
  whose = "Entra ID credentials",
  variables = { "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE", "IDENTITY_ENDPOINT" },
  files = function()
    local folder = first("AZURE_CONFIG_DIR")
    return { (folder ~= "" and folder or home() .. "/.azure") .. "/azureProfile.json" }
  end,
  needs = "needs an Entra ID login: az login",
}

---@type table<string, CodeCompanion.Cloud> Keyed by `opts.client`
local CLOUDS = { bedrock = aws, bedrock_mantle = aws, vertex = google, azure = azure }

local M = {}

---@param client string `opts.client`
---@return CodeCompanion.Cloud?
function M.of(client)
  return CLOUDS[client]
end

---@param cloud CodeCompanion.Cloud
---@return boolean
function M.has_credentials(cloud)
  return first(unpack(cloud.variables)) ~= ""
    or vim.iter(cloud.files()):any(function(path)
      return path ~= "" and vim.uv.fs_stat(path) ~= nil
    end)
end

return M
