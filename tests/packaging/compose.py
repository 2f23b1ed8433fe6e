"""compose.yaml as the tests read it."""

# The order that depends_on gives; podman-compose itself could wait for health checks with systemd alone.
ORDER = ("primary", "standby", "migrate", "lookups", "others", "compiler", "nginx")
ENDING = ("migrate",)
SECRETS = {
    # With what shells, URLs and SQL take for their own.
    "POSTGRES_PASSWORD": "super 'user'",
    "CDB_DATABASE_PASSWORD": "p@ss:w/o'r\"d %41",
    "CDB_REPLICATION_PASSWORD": "repl'ica $tion",
    "CDB_SECRET_KEY": "0123456789abcdef" * 4,
}
