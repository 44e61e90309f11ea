"""Random regular languages, as Valvoda et al. (2022) ask: what training makes of each layer, beside what theory says."""
