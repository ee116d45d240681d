"""Opening seals with a role and a reason, forgetting a customer and proving it, legal holds (promise 9)."""
