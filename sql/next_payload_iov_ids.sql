-- Take as many ids for new payload IOVs as are asked for.
-- Parameters: count integer.
SELECT nextval(pg_get_serial_sequence('"PayloadIOV"', 'id')) FROM generate_series(1, %(count)s)
