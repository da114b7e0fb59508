"""What is measured: images, pipeline stages, model registry, checkpoints, layer spans. Torch lives here only."""
