"""What the API adds to Django REST framework: JSON, errors, documents, pages, validation and permissions."""
