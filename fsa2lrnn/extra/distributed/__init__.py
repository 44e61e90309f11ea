"""Train many runs at once: in processes, on Ray, stacked in one tensor or as CUDA graphs; write to trackers."""
