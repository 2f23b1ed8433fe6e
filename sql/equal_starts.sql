-- Which of many new rows have the start of an IOV that their payload list holds already: index of the row from 0, IOV id.
-- Parameters: list_ids bigint[], moments numeric[] (combined starts), one element for each row.
-- Expected plan: one probe of payload_iov_lookup for each row.
SELECT wanted.position - 1, iov.id
FROM unnest(%(list_ids)s::bigint[], %(moments)s::numeric[]) WITH ORDINALITY AS wanted (list_id, moment, position)
JOIN "PayloadIOV" AS iov ON iov.payload_list_id = wanted.list_id AND iov.comb_iov = wanted.moment
ORDER BY wanted.position
LIMIT 1
