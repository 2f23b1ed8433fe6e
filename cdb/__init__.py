"""Configuration of the cdb service: environment, settings, routes and the database it runs on."""
