-- The number of client connections to the server, of all its databases, by state. No parameters.
-- Without pg_monitor, the state of other roles' connections is hidden.
SELECT coalesce(activity.state, 'hidden'), count(*)
FROM pg_stat_activity AS activity
WHERE activity.backend_type = 'client backend'
GROUP BY 1
