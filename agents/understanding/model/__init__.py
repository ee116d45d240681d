"""The intent model: a linear classifier on n-grams, fitted on example sentences and shipped as one file."""
