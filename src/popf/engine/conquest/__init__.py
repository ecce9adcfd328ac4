"""Which training node conquers a new sample: in the space tree, by tiles of products, or by a scan."""
