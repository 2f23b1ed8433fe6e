-- Apply the settings of the function cdb_lookup, as the database has them, to this transaction. No parameters.
SELECT set_config(split_part(setting, '=', 1), substr(setting, strpos(setting, '=') + 1), true)
FROM pg_proc, unnest(proconfig) AS setting
WHERE pg_proc.oid = 'cdb_lookup'::regproc
