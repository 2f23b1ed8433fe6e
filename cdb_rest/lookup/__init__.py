"""The hot read: of each payload list of a global tag the IOV that is valid at a moment."""
