-- Create the temporary tables of convert_history, for one global tag. No parameters. Placeholder: {payload}.
-- cdb_logged_stay: when a payload list was in the tag, as numbers of changes; last is exclusive, or null if the list still was in
--   the tag after the newest logged change. cdb_logged_row: payload IOVs that logged changes removed and added.
-- cdb_logged_life: payload IOVs with the change that added each of them (null: before the log) and the change that removed it;
--   9223372036854775807: none. cdb_later_history: rows of the history that get higher versions.
-- The conversion may take long, so there is no statement timeout.
SET LOCAL statement_timeout = 0;
DROP TABLE IF EXISTS pg_temp.cdb_logged_stay, pg_temp.cdb_logged_row, pg_temp.cdb_logged_life, pg_temp.cdb_later_history;
CREATE TEMPORARY TABLE cdb_logged_stay (
    stay integer PRIMARY KEY, name text NOT NULL, list_id bigint, first bigint NOT NULL, last bigint, came_empty boolean NOT NULL
) ON COMMIT DROP;
CREATE TEMPORARY TABLE cdb_logged_row ON COMMIT DROP AS
SELECT 0::bigint AS number, false AS is_added, 0 AS stay, id AS iov_id, comb_iov, major_iov, minor_iov, major_iov_end,
    minor_iov_end, created, {payload}
FROM "PayloadIOV"
LIMIT 0;
CREATE TEMPORARY TABLE cdb_logged_life (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, end_number bigint NOT NULL, LIKE cdb_logged_row
) ON COMMIT DROP;
CREATE INDEX ON cdb_logged_life (stay, comb_iov);
CREATE TEMPORARY TABLE cdb_later_history (LIKE "PayloadIOVHistory") ON COMMIT DROP
