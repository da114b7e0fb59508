"""What ``--source`` can name: images, a dataset's YAML, a video, a camera; a module each, behind ``protocol``."""
