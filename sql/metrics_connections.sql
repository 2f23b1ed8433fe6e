-- The connections of clients to the server, of all its databases, by state. The state of another role's connections is hidden from
-- a role without pg_monitor. No parameters.
SELECT coalesce(activity.state, 'hidden'), count(*)
FROM pg_stat_activity AS activity
WHERE activity.backend_type = 'client backend'
GROUP BY 1
