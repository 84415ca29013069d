"""Running programs for the model: which, with what environment, in what process group."""
