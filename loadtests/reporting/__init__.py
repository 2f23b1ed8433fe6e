"""The reports of bench and campaigns: statistics, tables, plots, pages, and the facts about the machine."""
