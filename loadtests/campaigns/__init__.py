"""`make load`: one question each, answered by load from locust and told as a report."""
