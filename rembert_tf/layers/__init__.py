"""The layers of RemBERT: `keras.layers` and `keras.ops` only, so that any Keras backend runs them."""
