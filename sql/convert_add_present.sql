-- Add to cdb_logged_life the payload IOVs of a list after the newest logged change that are not in it.
-- Parameters: stay integer; list_id bigint; version integer: that of the list. Placeholder: {payload}.
INSERT INTO cdb_logged_life (
    number, end_number, is_added, stay, iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
)
SELECT NULL, 9223372036854775807, false, %(stay)s, iov.iov_id, iov.comb_iov, iov.major_iov, iov.minor_iov,
    iov.major_iov_end, iov.minor_iov_end, iov.created, {iov.payload}
FROM (
    SELECT id AS iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
    FROM "PayloadIOV"
    WHERE payload_list_id = %(list_id)s AND added_in <= %(version)s
    UNION ALL
    SELECT iov_id, comb_iov, major_iov, minor_iov, major_iov_end, minor_iov_end, created, {payload}
    FROM "PayloadIOVHistory"
    WHERE payload_list_id = %(list_id)s AND row_start IS NULL AND added_in <= %(version)s AND removed_in > %(version)s
) AS iov
WHERE NOT EXISTS (
    SELECT FROM cdb_logged_life AS life
    WHERE life.stay = %(stay)s AND life.comb_iov = iov.comb_iov AND life.end_number = 9223372036854775807
)
