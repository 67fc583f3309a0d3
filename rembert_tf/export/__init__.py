"""Export of models as SavedModels that take strings and give answers, and as ONNX."""
