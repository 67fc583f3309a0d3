"""Training through Keras `fit`: one law for one device and many replicas."""
