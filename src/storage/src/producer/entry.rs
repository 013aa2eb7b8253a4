//! One producer of a log.

use callboard_protocol::records::{BatchHeader, add_sequence};

/// Batches remembered for each producer, to know a repeated one by.
const REMEMBERED: usize = 5;

/// A batch that a producer wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProducerBatch {
    /// Sequence number of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Records in it, less one.
    pub offset_delta: i32,
    /// Its largest timestamp, in milliseconds.
    pub timestamp_ms: i64,
}

impl ProducerBatch {
    /// Offset of its first record.
    pub fn first_offset(&self) -> i64 {
        self.last_offset - i64::from(self.offset_delta)
    }

    /// Sequence number of its first record.
    pub fn first_sequence(&self) -> i32 {
        // Sequences count modulo 2^31, so going back is going forward by the complement.
        self.last_sequence.wrapping_sub(self.offset_delta) & i32::MAX
    }
}

/// What the log knows of one producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerEntry {
    /// The producer's id.
    pub producer_id: i64,
    /// Its epoch; -1 before its first batch.
    pub epoch: i16,
    /// Epoch of the coordinator that wrote its last marker, -1 if none.
    pub coordinator_epoch: i32,
    /// When it wrote last, by its batches' timestamps, in milliseconds.
    pub last_timestamp_ms: i64,
    /// First offset of its open transaction.
    pub txn_first_offset: Option<i64>,
    batches: [ProducerBatch; REMEMBERED],
    len: u8,
}

impl ProducerEntry {
    pub(crate) fn new(producer_id: i64) -> ProducerEntry {
        ProducerEntry {
            producer_id,
            epoch: -1,
            coordinator_epoch: -1,
            last_timestamp_ms: -1,
            txn_first_offset: None,
            batches: [ProducerBatch::default(); REMEMBERED],
            len: 0,
        }
    }

    /// Its last batches at its current epoch, oldest first, five at most.
    pub fn batches(&self) -> &[ProducerBatch] {
        self.batches.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Its last batch at its current epoch.
    pub fn last_batch(&self) -> Option<&ProducerBatch> {
        self.batches().last()
    }

    /// Sequence number of its last record, -1 if it has none at this epoch.
    pub fn last_sequence(&self) -> i32 {
        self.last_batch().map_or(-1, |batch| batch.last_sequence)
    }

    /// The remembered batch with exactly these sequences.
    pub(crate) fn duplicate_of(&self, header: &BatchHeader) -> Option<&ProducerBatch> {
        if header.producer_epoch != self.epoch {
            return None;
        }
        let last = add_sequence(header.base_sequence, header.last_offset_delta);
        self.batches().iter().find(|b| b.last_sequence == last && b.first_sequence() == header.base_sequence)
    }

    pub(crate) fn set_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.len = 0;
        }
    }

    pub(crate) fn push(&mut self, batch: ProducerBatch) {
        if usize::from(self.len) == REMEMBERED {
            self.batches.rotate_left(1);
            self.len -= 1;
        }
        if let Some(slot) = self.batches.get_mut(usize::from(self.len)) {
            *slot = batch;
            self.len += 1;
        }
    }
}
