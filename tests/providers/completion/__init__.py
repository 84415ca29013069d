"""Code completion servers, as their documentation describes them."""
