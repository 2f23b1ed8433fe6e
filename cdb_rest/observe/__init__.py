"""What is known of each request while it is answered, and who is told of it."""
