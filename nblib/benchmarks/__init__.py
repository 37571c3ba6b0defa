"""The benchmarks, one small class each on `base`, and `scoring`, which scores any system on those of `catalogue`."""
