"""What is kept in files beside the database."""
