"""Who asks: each kind of client as a locust user that checks every answer it gets."""
