"""Many cases side by side: models, variants, sizes, batches and threads, each timed by pyperf."""
