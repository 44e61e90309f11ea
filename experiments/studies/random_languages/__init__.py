"""Random regular languages after Valvoda et al. (2022): each trained layer compared with the prediction of theory."""
