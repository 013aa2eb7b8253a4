//! Who may commit.

use callboard_protocol::{ByteString, ErrorCode};

use super::{ClassicGroup, State};

impl ClassicGroup {
    /// Whether somebody may commit: a member by its generation, anybody (an administrator, a consumer that assigns
    /// itself) while there are no members.
    ///
    /// # Errors
    /// What the client is told.
    pub(crate) fn check_commit(
        &self,
        member_id: &str,
        instance: Option<&ByteString>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        if generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        if generation < 0 && member_id.is_empty() && instance.is_none() {
            return Err(ErrorCode::UnknownMemberId);
        }
        self.check_member(member_id, instance)?;
        if generation != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        match self.state {
            // What was read in the last generation is to be committed before the next one begins.
            State::CompletingRebalance => Err(ErrorCode::RebalanceInProgress),
            State::Empty | State::PreparingRebalance | State::Stable => Ok(()),
        }
    }
}
