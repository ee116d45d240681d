"""The servers behind facts and relations, for those who have none: fetched once a user, run on loopback."""
