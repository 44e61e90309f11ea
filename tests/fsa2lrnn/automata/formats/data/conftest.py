collect_ignore_glob = ["make_*.py"]  # they need tools that our environment has not
