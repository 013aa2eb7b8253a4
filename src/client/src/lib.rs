//! The native client: producer, consumer and admin.
