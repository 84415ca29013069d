---Endpoints that speak Chat Completions, with their differences as data. What is not said here is learned from what the
---endpoint refuses (python/codecompanion/adapters/openai_chat/refusals.py).
---
---Read from each one's own documentation (2026-11):
---  * `limits_path` is where a local server tells the window a request really has; the model's own figure would let it
---    cut prompts silently. Ollama and LM Studio know it once the model is loaded. Mistral's names that end in `latest`
---    are in no table of windows, but in its own list.
---  * `send_reasoning = "tool_turns"`: the reasoning of turns that called tools goes back. DeepSeek and Moonshot refuse
---    requests without it; templates of local models put it where it belongs and drop the rest.
---  * `one_system_message`: Gemini keeps one instruction beside the messages; Mistral's format and the templates of
---    local models put a system message in front or refuse it.
---  * Mistral reports usage without being asked, refuses `max_completion_tokens`, and takes call ids of nine letters
---    and digits only.

---The address of Ollama: OLLAMA_HOST as its own command line reads it, with an address to bind to as one to call.
---@return string
local function ollama_address()
  local host = vim.env.OLLAMA_HOST or ""
  host = (host ~= "" and host or "127.0.0.1:11434"):gsub("/+$", "")
  if not host:match("^https?://") then
    host = "http://" .. (host:match(":%d+$") and host or host .. ":11434")
  end
  return (host:gsub("//0%.0%.0%.0", "//127.0.0.1"))
end

---@type table<string, table<string, any>>
return {
  ollama = {
    formatted_name = "Ollama",
    base_url = ollama_address(),
    chat_path = "/v1/chat/completions",
    models_path = "/v1/models",
    limits_path = "/api/ps",
    options = { send_reasoning = "tool_turns", one_system_message = true },
    about = "Ollama, at OLLAMA_HOST or http://localhost:11434. No key.",
  },
  llama_cpp = {
    formatted_name = "llama.cpp",
    base_url = "http://localhost:8080",
    chat_path = "/v1/chat/completions",
    models_path = "/v1/models",
    limits_path = "/props",
    options = { send_reasoning = "tool_turns", one_system_message = true },
    about = "The server of llama.cpp, at http://localhost:8080. No key.",
  },
  vllm = {
    formatted_name = "vLLM",
    base_url = "http://localhost:8000",
    chat_path = "/v1/chat/completions",
    models_path = "/v1/models",
    limits_path = "/v1/models",
    options = { send_reasoning = "tool_turns", one_system_message = true },
    about = "vLLM, at http://localhost:8000. No key.",
  },
  lmstudio = {
    formatted_name = "LM Studio",
    base_url = "http://localhost:1234",
    chat_path = "/v1/chat/completions",
    models_path = "/v1/models",
    limits_path = "/api/v0/models",
    options = { one_system_message = true },
    about = "LM Studio, at http://localhost:1234. No key.",
  },
  openrouter = {
    formatted_name = "OpenRouter",
    base_url = "https://openrouter.ai/api/v1",
    key = "OPENROUTER_API_KEY",
    model = "openai/gpt-5.4-mini",
    options = { document_input = true },
    about = "OpenRouter. Key: environment variable OPENROUTER_API_KEY.",
  },
  deepseek = {
    formatted_name = "DeepSeek",
    base_url = "https://api.deepseek.com",
    key = "DEEPSEEK_API_KEY",
    model = "deepseek-flash",
    options = { send_reasoning = "tool_turns", reasoning_field = "reasoning_content", image_input = false },
    about = "DeepSeek. Key: environment variable DEEPSEEK_API_KEY.",
  },
  mistral = {
    formatted_name = "Mistral",
    base_url = "https://api.mistral.ai/v1",
    limits_path = "/models",
    key = "MISTRAL_API_KEY",
    model = "mistral-medium-latest",
    include_usage = false,
    options = { short_call_ids = true, reasoning_field = "content.thinking", one_system_message = true },
    about = "Mistral. Key: environment variable MISTRAL_API_KEY.",
  },
  xai = {
    formatted_name = "xAI",
    base_url = "https://api.x.ai/v1",
    key = "XAI_API_KEY",
    model = "grok-4.5",
    max_tokens_field = "max_completion_tokens",
    about = "xAI. Key: environment variable XAI_API_KEY.",
  },
  gemini = {
    formatted_name = "Gemini",
    base_url = "https://generativelanguage.googleapis.com/v1beta/openai",
    key = "GEMINI_API_KEY",
    model = "gemini-3.5-flash",
    options = { one_system_message = true },
    about = "Gemini, by its endpoint for OpenAI clients. Key: environment variable GEMINI_API_KEY.",
  },
  kimi = {
    formatted_name = "Kimi",
    base_url = "https://api.moonshot.ai/v1",
    key = "MOONSHOT_API_KEY",
    model = "kimi-k2.7-code",
    options = { send_reasoning = "tool_turns", reasoning_field = "reasoning_content" },
    about = "Moonshot's Kimi. Key: environment variable MOONSHOT_API_KEY.",
  },
  novita = {
    formatted_name = "Novita",
    base_url = "https://api.novita.ai/openai/v1",
    key = "NOVITA_API_KEY",
    model = "zai-org/glm-5.2",
    options = { image_input = false, one_system_message = true },
    about = "Novita. Key: environment variable NOVITA_API_KEY.",
  },
  huggingface = {
    formatted_name = "Hugging Face",
    base_url = "https://router.huggingface.co/v1",
    key = "HUGGINGFACE_API_KEY",
    model = "openai/gpt-oss-120b",
    options = { image_input = false, one_system_message = true },
    about = "Hugging Face's router. Key: environment variable HUGGINGFACE_API_KEY.",
  },
  azure_openai = {
    formatted_name = "Azure OpenAI",
    key = "AZURE_OPENAI_API_KEY",
    key_header = "api-key",
    model = "gpt-4.1",
    max_tokens_field = "max_completion_tokens",
    entry = { url = "${endpoint}/openai/v1/chat/completions", env = { endpoint = "AZURE_OPENAI_ENDPOINT" } },
    about = "Azure OpenAI's v1 API: the model is the name of your deployment. Address: AZURE_OPENAI_ENDPOINT, key:"
      .. " AZURE_OPENAI_API_KEY.",
  },
}
