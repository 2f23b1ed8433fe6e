-- Mark the new pages as visible to all, which index-only scans need, and count the rows for the planner.
VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"
