"""For test suites, ours and users': strategies for hypothesis, and broken objects that every judge must reject."""
