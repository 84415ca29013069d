"""Provider endpoints: render a view to bytes, stream the reply."""
