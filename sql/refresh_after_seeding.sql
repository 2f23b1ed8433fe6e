-- Mark the new pages as all-visible, for index-only scans, and update the planner's statistics. No parameters.
VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"
