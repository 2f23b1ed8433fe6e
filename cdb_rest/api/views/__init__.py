"""The views. Each parses the request, calls one service or one read, and returns the response."""
