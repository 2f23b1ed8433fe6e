-- The reverse of the other files, except fork_node.sql. Triggers go with their functions.
DROP FUNCTION cdb_count_iovs, cdb_count_lists, cdb_mark_changed_list, cdb_mark_changed_type, cdb_mark_updated_iovs CASCADE;
DROP FUNCTION cdb_mark_changed;
DROP FUNCTION cdb_point_at;
DROP AGGREGATE cdb_latest(anycompatible);
DROP FUNCTION cdb_second, cdb_end, cdb_end_json, cdb_moment_json;
DROP FUNCTION cdb_answer_known, cdb_answer_since, cdb_window_of, cdb_rows_of, cdb_is_older, cdb_database_identity;
DROP FUNCTION cdb_answer_at, cdb_window_at, cdb_area_at, cdb_lookup_at, cdb_version_at, cdb_history_entry;
DROP FUNCTION cdb_answer, cdb_window, cdb_lookup, cdb_version;
