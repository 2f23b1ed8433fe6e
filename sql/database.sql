-- Snapshots, time limits, set-up, metrics.


-- name: snapshot
-- Make this transaction read-only with one snapshot for all of its statements, and set their timeout.
-- Parameters: statement text: the timeout in milliseconds (null: unchanged).
-- Both statements are sent in one round trip, because the first one must come before any SELECT.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SELECT set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true)


-- name: limit_statement
-- Set the statement timeout of this transaction.
-- Parameters: statement text, in milliseconds (null: unchanged).
SELECT set_config('statement_timeout', coalesce(%(statement)s, current_setting('statement_timeout')), true)


-- name: limit_lock_wait
-- Set the lock timeout of this session.
-- Parameters: milliseconds text.
SELECT set_config('lock_timeout', %(milliseconds)s, false)


-- name: recovery_and_mode
-- Whether the server is a standby, and the mode in which the ends of the stored intervals are written (null if none is recorded).
-- No parameters. Each new connection runs it.
SELECT pg_is_in_recovery(), (SELECT value FROM "DatabaseProperty" WHERE name = 'iov_mode')


-- name: recovery
-- The same for a database without tables. No parameters.
SELECT pg_is_in_recovery(), NULL


-- name: lock_setup
-- Take the lock for migrations until the transaction ends. The key is an arbitrary constant of this project. No parameters.
-- A session-level lock would not work behind a pooler. The transaction is idle meanwhile, so its idle timeout is disabled.
SELECT set_config('idle_in_transaction_session_timeout', '0', true), pg_advisory_xact_lock(3237998080)


-- name: database_users
-- The names of the programs that use a database of this server; null if there is none. Parameters: name text.
SELECT string_agg(DISTINCT application_name, ', ')
FROM pg_stat_activity
WHERE datname = %(name)s AND backend_type = 'client backend' AND pid <> pg_backend_pid()


-- name: count_global_tags
-- The number of global tags. No parameters.
SELECT count(*) FROM "GlobalTag"


-- name: metrics_subscriptions
-- The numbers of working, failing and stopped subscriptions, and the age in seconds of the oldest change that one of the first two
-- has not received, 0 if there is none.
SELECT count(*) FILTER (WHERE stopped IS NULL AND failures = 0), count(*) FILTER (WHERE stopped IS NULL AND failures > 0),
    count(*) FILTER (WHERE stopped IS NOT NULL), coalesce(extract(epoch FROM now() - min(change.created)), 0)::float8
FROM "Subscription" AS subscription
LEFT JOIN LATERAL (
    SELECT least(
        (SELECT created FROM "GlobalTagChange" WHERE position > subscription.delivered ORDER BY position LIMIT 1),
        (SELECT created FROM "GlobalTagChange" WHERE position IS NULL ORDER BY number LIMIT 1)
    ) AS created
) AS change ON subscription.stopped IS NULL


-- name: metrics_global_tags
-- The global tags that changed last: name, status, revision, and the stored counts of payload lists and payload IOVs.
-- Parameters: most integer: the maximum number of tags.
SELECT tag.name, tag_status.name, tag.revision, tag.payload_lists_count, tag.payload_iov_count
FROM "GlobalTag" AS tag
JOIN "GlobalTagStatus" AS tag_status ON tag_status.id = tag.status_id
ORDER BY tag.updated DESC, tag.id DESC
LIMIT %(most)s
