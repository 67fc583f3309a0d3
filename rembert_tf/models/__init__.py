"""RemBERT's encoder and the models built on it."""
