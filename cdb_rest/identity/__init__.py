"""Identification of clients: tokens of this service and of other issuers, proxies' users, trusted networks, access rules."""
