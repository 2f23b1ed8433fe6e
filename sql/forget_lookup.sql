-- Forget what prepare_lookup.sql prepared, because the connection may go on.
DEALLOCATE explained_lookup
