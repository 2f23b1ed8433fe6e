-- Remove the statement that prepare_lookup.sql prepared, because the connection may be reused. No parameters.
DEALLOCATE explained_lookup
