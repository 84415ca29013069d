"""What a provider's trouble means: its words and codes mapped to our error tree, and when to try again."""
