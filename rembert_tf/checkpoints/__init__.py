"""Reading and writing pretrained weights."""
