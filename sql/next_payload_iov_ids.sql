-- Reserve ids for new payload IOVs.
-- Parameters: count integer: how many.
SELECT nextval(pg_get_serial_sequence('"PayloadIOV"', 'id')) FROM generate_series(1, %(count)s)
