-- Send the rows of export_rows.sql or export_past_rows.sql, which replace {rows}, to the client as CSV. Null is an unquoted empty
-- value; an empty text is quoted. Parameters: those of the rows.
COPY (
{rows}
) TO STDOUT WITH (FORMAT csv, HEADER)
