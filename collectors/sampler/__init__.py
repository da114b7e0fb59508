"""Sampling with perf_event_open: which code every thread of the worker was in, and when it was off-CPU."""

from collectors.sampler.collector import SamplerCollector

__all__ = ["SamplerCollector"]
