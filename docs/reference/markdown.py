"""Markdown tables."""


def cell(text: str) -> str:
    """Text for a cell of a table: on one line, without characters that Markdown would interpret as HTML or as a border."""
    return " ".join(text.split()).replace("<", "\\<").replace("|", "\\|")
