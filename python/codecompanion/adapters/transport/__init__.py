"""How a rendered body reaches an endpoint and its response returns: httpx2, or an official client."""
