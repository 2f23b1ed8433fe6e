-- Let the rows of a payload type be found, by start, once all of them are there.
CREATE INDEX ON cdb_import (payload_type, comb_iov);
ANALYZE cdb_import
