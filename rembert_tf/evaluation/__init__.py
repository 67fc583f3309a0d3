"""Scores of predictions, official and corrected. Nothing here imports TensorFlow or Keras."""
