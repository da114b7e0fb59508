"""What oneDNN reports to execute (its verbose mode): primitives with implementation, data types, layouts and time."""

from collectors.onednn_verbose.collector import OnednnVerboseCollector

__all__ = ["OnednnVerboseCollector"]
