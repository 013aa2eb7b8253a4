//! Groups, transactions and share groups as state machines; pure.
