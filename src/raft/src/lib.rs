//! KRaft consensus on one log, as a state machine; pure.
