"""What analysts call: ``.dp`` on frames, the verbs, plans with their frame, partitions, prices and advice."""
