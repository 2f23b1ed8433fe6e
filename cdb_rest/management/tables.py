"""Tables on the terminal."""

from collections.abc import Sequence

# Further rows are only counted.
ROWS_SHOWN = 40


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first rows in columns under their header, and how many more there are."""
    shown = [header, *rows[:ROWS_SHOWN]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(header))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    if len(rows) > ROWS_SHOWN:
        lines.append(f"and {len(rows) - ROWS_SHOWN:,} more")
    return "\n".join(lines)
