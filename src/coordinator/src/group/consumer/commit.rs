//! Who may commit and ask for offsets in a consumer group.

use std::cmp::Ordering;

use callboard_protocol::{ErrorCode, Uuid};

use super::state::ConsumerGroup;

/// From this version of OffsetCommit on a client knows what STALE_MEMBER_EPOCH means.
const FIRST_WITH_MEMBER_EPOCHS: i16 = 9;

impl ConsumerGroup {
    /// Whether a member may commit for some partitions: by its epoch, in a version of OffsetCommit. An epoch that has
    /// passed is good for what the member has had since (KIP-1251); one partition for which it is not spoils all.
    ///
    /// # Errors
    /// What the client is told.
    pub fn check_commit(
        &self,
        member_id: &str,
        member_epoch: i32,
        version: i16,
        mut partitions: impl Iterator<Item = (Uuid, i32)>,
    ) -> Result<(), ErrorCode> {
        // An administrator, or a consumer that assigns itself: welcome while there are no members.
        if member_epoch < 0 && self.is_empty() {
            return Ok(());
        }
        let Some(member) = self.member(member_id) else { return Err(ErrorCode::UnknownMemberId) };
        if member.uses_classic_protocol() {
            return if member_epoch == member.epoch { Ok(()) } else { Err(ErrorCode::IllegalGeneration) };
        }
        if version < FIRST_WITH_MEMBER_EPOCHS {
            return Err(ErrorCode::UnsupportedVersion);
        }
        let had_since = |(topic, partition)| {
            let pending = || member.pending_revocation.epoch_of(topic, partition);
            member
                .assigned
                .epoch_of(topic, partition)
                .or_else(pending)
                .is_some_and(|epoch| epoch <= member_epoch)
        };
        let is_good = match member_epoch.cmp(&member.epoch) {
            Ordering::Equal => true,
            Ordering::Greater => false,
            Ordering::Less => partitions.all(had_since),
        };
        if is_good { Ok(()) } else { Err(ErrorCode::StaleMemberEpoch) }
    }

    /// Whether a member may ask for offsets.
    ///
    /// # Errors
    /// What the client is told.
    pub fn check_fetch(&self, member_id: &str, member_epoch: i32) -> Result<(), ErrorCode> {
        match self.member(member_id) {
            None => Err(ErrorCode::UnknownMemberId),
            Some(member) if member.epoch != member_epoch => Err(ErrorCode::StaleMemberEpoch),
            Some(_) => Ok(()),
        }
    }
}
