"""The content of seeded tags, computed from the scenario without a database: moments, rows and whole responses."""
