"""Entries of `adapters.http` as users write them, in codecompanion.nvim's shapes too → `AdapterSettings`.

The editor merges the layers of an entry and evaluates its functions (`lua/codecompanion/adapters/adapter_entry.lua`);
what they mean is decided here. The built-in entries are `codecompanion/builtin_adapters.json`, read from each
endpoint's own documentation (2026-11; `documented_at` is where). What is not said there is learned from what the
endpoint refuses (`openai_chat/refusals.py`):

* `limits_path` is where a local server tells the window a request really has; the model's own figure would let it cut
  prompts silently. Ollama and LM Studio know it once the model is loaded. Mistral's names that end in `latest` are in
  no table of windows, but in its own list.
* `send_reasoning = "tool_turns"`: the reasoning of turns that called tools goes back. DeepSeek and Moonshot refuse
  requests without it; templates of local models put it where it belongs and drop the rest.
* `one_system_message`: Gemini keeps one instruction beside the messages; Mistral's format and the templates of local
  models put a system message in front or refuse it.
* `alternate_roles`: the templates of open models (Mistral's, Gemma's) raise an error for two user messages in a row.
* Mistral reports usage without being asked, refuses `max_completion_tokens`, and takes call ids of nine letters and
  digits only.
* `address_variable` names the variable that Ollama's own command line reads; `entry` is a layer below the user's.
* Groq and Cerebras have `max_completion_tokens` (Groq calls the other name deprecated) and refuse `logit_bias`, and
  `logprobs` or `parallel_tool_calls`, which are never sent unasked. Groq's list tells windows; Cerebras's does not.
* `send_reasoning` of Fireworks and Z.AI, in the field it came in: both say that it belongs to turns that called tools.
  Groq, Together, Cerebras and Nebius say nothing of a field that could go back; none is sent.
* Z.AI reports usage without being asked, names no `stream_options`, and has no list of its models: ours stands in.
* MiniMax writes reasoning into the answer as `<think>` unless it is told to split it; its `reasoning_details` then go
  back as they came. Its `base_resp` is an error with status 200 (`errors/error_map.py`).
* Nebius tells windows in its list when that is asked to be verbose.
* GitHub Models is not here: GitHub closed it on 30 July 2026.
"""
