-- An id for a payload list that does not exist any more. No parameters.
SELECT nextval(pg_get_serial_sequence('"PayloadList"', 'id'))
