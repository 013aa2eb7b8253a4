//! Metadata transactions: several batches that become visible together.

use callboard_protocol::messages::metadata_record::MetadataRecord;

use super::Image;
use crate::error::ReplayError;

/// An image that shows a transaction's records only once it has ended.
///
/// Kafka writes a transaction around changes too large for one batch, such as the bootstrap records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TransactionalImage {
    visible: Image,
    /// The image with the records of the open transaction.
    pending: Option<Image>,
}

impl TransactionalImage {
    /// Starts from an image outside any transaction.
    pub fn new(image: Image) -> Self {
        Self { visible: image, pending: None }
    }

    /// What readers may see.
    pub fn visible(&self) -> &Image {
        &self.visible
    }

    /// The image with all records applied, the open transaction's too.
    pub fn latest(&self) -> &Image {
        self.pending.as_ref().unwrap_or(&self.visible)
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.pending.is_some()
    }

    /// Applies one record.
    pub fn apply(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        const NONE_OPEN: &str = "outside of a transaction";
        match record {
            MetadataRecord::BeginTransactionRecord(_) => {
                if self.pending.is_some() {
                    let (record, state) = ("BeginTransactionRecord", "within a transaction");
                    return Err(ReplayError::BadTransaction { record, state });
                }
                self.pending = Some(self.visible.clone());
            }
            MetadataRecord::EndTransactionRecord(_) => match self.pending.take() {
                Some(image) => self.visible = image,
                None => {
                    let record = "EndTransactionRecord";
                    return Err(ReplayError::BadTransaction { record, state: NONE_OPEN });
                }
            },
            MetadataRecord::AbortTransactionRecord(_) => {
                if self.pending.take().is_none() {
                    let record = "AbortTransactionRecord";
                    return Err(ReplayError::BadTransaction { record, state: NONE_OPEN });
                }
            }
            _ => return self.pending.as_mut().unwrap_or(&mut self.visible).apply(record),
        }
        Ok(())
    }
}
