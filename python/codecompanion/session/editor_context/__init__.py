"""Editor-context items (`#{diagnostics}`): reads those that the host provides, and shows all of them to the model."""
