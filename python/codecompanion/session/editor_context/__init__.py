"""Items of editor context (`#{diagnostics}`): the items that the host reads, and how all are shown to the model."""
