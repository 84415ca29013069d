"""What the user attaches: files, images, rules, pins; and whether it still holds."""
