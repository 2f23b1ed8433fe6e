"""The views: parse, call one service or one read, return."""
