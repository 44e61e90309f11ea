"""The story that `fsa2lrnn demo` tells: of a compiled machine, and of a learned one."""
