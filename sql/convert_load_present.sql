-- Add to cdb_logged_row the payload IOVs that were in the lists after the newest logged change, as if another change had removed
-- them: those that have a start of a logged payload IOV. Parameters: number bigint: the newest logged change.
-- The index is for the condition: the planner does not know how many rows a list has. Placeholders: {payload} and {iov.payload}.
CREATE INDEX ON cdb_logged_row (stay, comb_iov);
ANALYZE cdb_logged_row;
INSERT INTO cdb_logged_row (
    number, is_added, stay, iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
)
SELECT 9223372036854775807, false, stay.stay, iov.iov_id, iov.comb_iov, iov.major_iov, iov.minor_iov, iov.major_iov_end,
    iov.minor_iov_end, iov.created, {iov.payload}
FROM (SELECT DISTINCT stay FROM cdb_logged_row) AS touched_list
JOIN cdb_logged_stay AS stay ON stay.stay = touched_list.stay
CROSS JOIN LATERAL cdb_version_at(stay.list_id, %(number)s) AS list_version (version)
CROSS JOIN LATERAL (
    SELECT id AS iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
    FROM "PayloadIOV"
    WHERE payload_list_id = stay.list_id AND added_in <= list_version.version
    UNION ALL
    SELECT iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
    FROM "PayloadIOVHistory"
    WHERE payload_list_id = stay.list_id AND row_start IS NULL AND added_in <= list_version.version
        AND removed_in > list_version.version
) AS iov
WHERE stay.last IS NULL AND EXISTS (
    SELECT FROM cdb_logged_row AS touched WHERE touched.stay = stay.stay AND touched.comb_iov = iov.comb_iov
)
