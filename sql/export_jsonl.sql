-- Send the rows of export_rows.sql or export_past_rows.sql, which replace {rows}, to the client as JSON objects, one per line.
-- Parameters: those of the rows.
-- The text format of COPY would double backslashes. The CSV format leaves the lines unchanged, because its quote and
-- delimiter are characters that JSON text never contains.
COPY (
SELECT row_to_json(exported) FROM (
{rows}
) AS exported
) TO STDOUT WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
