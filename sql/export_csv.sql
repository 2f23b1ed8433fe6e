-- Send the rows of export_rows.sql, which replace {rows}, to the client as CSV. Null is an unquoted empty value; an empty text is
-- quoted. Parameters: those of export_rows.sql.
COPY (
{rows}
) TO STDOUT WITH (FORMAT csv, HEADER)
