"""At which frequency the core runs that calls the model, without hardware counters."""
