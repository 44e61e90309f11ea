"""Random regular languages, as Valvoda et al. (2022) ask: each layer as trained, beside what theory says."""
