-- Execute the statement that prepare_lookup.sql prepared. Parameters: those of lookup.sql.
EXECUTE explained_lookup (
    %(tag_id)s, %(major)s, %(minor)s, %(moment)s, %(only_valid)s, %(inclusive)s, %(as_objects)s
)
