"""Data to try, test and measure with: scenario definitions, a deterministic row generator and the writer."""
