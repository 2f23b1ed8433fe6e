-- How many sessions of clients, this one left out, are in each state, and what those that work wait for: each second under load.
SELECT
    coalesce(state, 'hidden'),
    CASE WHEN state = 'active' THEN coalesce(wait_event_type || ':' || wait_event, 'none') END,
    count(*)
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
GROUP BY 1, 2;
