"""Settings and resources that open stores share: budget, threads, cache, keys, options of object stores."""
