"""What is in a tag, told by its scenario alone: moments, rows, and whole answers, without asking a database."""
