//! One partition's log on disk: segments, indexes, producer state, recovery.
