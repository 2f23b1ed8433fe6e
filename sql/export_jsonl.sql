-- Send the rows of export_rows.sql, put in at {rows}, to the client as JSON objects, one a line.
-- COPY's own text format would double backslashes. As CSV whose quote and delimiter are characters that JSON text never holds,
-- the lines stay as they are.
COPY (
SELECT row_to_json(exported) FROM (
{rows}
) AS exported
) TO STDOUT WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
