-- For each of some moments the next start in a payload list after it, as a combined moment, or null.
-- Parameters: lists bigint[], moments numeric[]: the payload list and the combined moment of each.
-- Expected plan: for each moment an Index Only Scan of payload_iov_lookup that stops at the first row.
SELECT next.comb_iov
FROM unnest(%(lists)s::bigint[], %(moments)s::numeric[]) WITH ORDINALITY AS given (list_id, moment, place)
LEFT JOIN LATERAL (
    SELECT comb_iov
    FROM "PayloadIOV"
    WHERE payload_list_id = given.list_id AND comb_iov > given.moment
    ORDER BY comb_iov ASC NULLS FIRST
    LIMIT 1
) AS next ON true
ORDER BY given.place
