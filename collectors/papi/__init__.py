"""PAPI as the source of counts: presets and native events of every thread."""

from collectors.papi.collector import PapiCollector

__all__ = ["PapiCollector"]
