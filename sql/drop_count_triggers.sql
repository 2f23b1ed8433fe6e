-- Undoes count_triggers.sql; the triggers go with their functions.
DROP FUNCTION cdb_count_iovs() CASCADE;
DROP FUNCTION cdb_count_lists() CASCADE;
