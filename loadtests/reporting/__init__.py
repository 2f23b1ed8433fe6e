"""What bench and campaigns write: figures, tables, plots and pages, and what machine they belong to."""
