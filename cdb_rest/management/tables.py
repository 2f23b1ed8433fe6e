"""Text tables for the terminal."""

from collections.abc import Sequence

# Only the number of further rows is shown.
ROWS_SHOWN = 40


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a header and the first rows, and the number of further rows."""
    shown = [header, *rows[:ROWS_SHOWN]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(header))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    if len(rows) > ROWS_SHOWN:
        lines.append(f"and {len(rows) - ROWS_SHOWN:,} more")
    return "\n".join(lines)
