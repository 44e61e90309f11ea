"""Train on several processes or machines, several seeds in one tensor, or as CUDA graphs; write to trackers."""
