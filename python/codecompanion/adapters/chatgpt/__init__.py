"""The ChatGPT plan adapter: “Sign in with ChatGPT” for open-source programs, tokens, models, and requests.

From OpenAI's pages below https://developers.openai.com/siwc/token-sharing-open-source (sign-in, profiles-and-sessions,
models-and-inference, token-reference, errors-and-recovery, preview-limitations) and /siwc/ui-ux-guidelines, as of
November 2026. It has not been tested with an account. Imported only when the adapter is used.
"""
