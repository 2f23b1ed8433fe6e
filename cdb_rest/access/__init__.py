"""Who a client is and what it may do: tokens, identity providers, sessions, access rules, and logins."""
