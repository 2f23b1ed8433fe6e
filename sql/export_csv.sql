-- Send the rows of export_rows.sql, put in at {rows}, to the client as CSV: what is unquoted and empty is null, what is quoted and
-- empty is an empty text.
COPY (
{rows}
) TO STDOUT WITH (FORMAT csv, HEADER)
