"""Items of editor context (`#{diagnostics}`): those that the host reads, and their text for the model."""
