"""Django middleware: request limits, error format, security headers, observability, the admin and DEBUG pages."""
