"""Notices: webhooks and mail about changes and requests, sent by a thread of `manage.py compiler`."""
