"""Items of editor context (`#{diagnostics}`): what the host reads itself, how they read to the model."""
