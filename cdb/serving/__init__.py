"""The production deployment on one machine (`make serve`): the configuration of supervisord, nginx, granian and gunicorn."""
