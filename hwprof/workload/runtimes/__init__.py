"""Other programs that run a model in the place of PyTorch: how a model comes to them, what they tell of its layers."""
