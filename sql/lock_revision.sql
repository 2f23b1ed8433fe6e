-- Lock a revision of a global tag against the loss of its history until the transaction ends. Returns whether it has its history.
-- Parameters: tag text, revision bigint.
-- Any number of writers can read the same revision. The row is read again after a wait, so the result is that of now.
SELECT has_history FROM "GlobalTagChange" WHERE global_tag = %(tag)s AND revision = %(revision)s FOR SHARE
