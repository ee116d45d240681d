"""Understanding: a customer's words as intents, slots and their evidence; Chinese and English, by rules."""
