//! How old offsets go away, by Kafka's rules (KIP-211).

use std::collections::BTreeSet;

use callboard_protocol::ByteString;
use callboard_protocol::messages::OffsetCommitKey;

use super::store::{Committed, PartitionOfGroup};
use crate::cluster::Circumstances;
use crate::group::classic::{ClassicGroup, State};
use crate::group::{Group, GroupOutcome, GroupRecord, GroupShard, TimerKind};

/// From when a group's offsets grow old.
enum Rule {
    /// They do not.
    Never,
    /// From when the group lost its last member, or from the commit if nobody knows when.
    FromEmpty(Option<i64>),
    /// From the commit, but for topics that members read.
    FromCommit(BTreeSet<ByteString>),
}

/// Writes tombstones for what is too old, and for groups that have nothing left; then sets the next time to look.
pub(crate) fn expire(shard: &mut GroupShard, cx: &mut Circumstances<'_>) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    let ids: Vec<ByteString> = shard.groups.keys().cloned().collect();
    for id in &ids {
        let Some(group) = shard.groups.get(id) else { continue };
        let (rule, empty) = (Rule::of(group), group.is_empty());
        let (old, kept) = sort_out(shard, id, &rule, cx);
        for key in old {
            shard.write(&mut outcome, GroupRecord::tombstone(key));
        }
        if empty && kept == 0 && shard.offsets.pending_of(id).next().is_none() {
            shard.delete_group(id, &mut outcome);
        }
    }
    schedule(shard, cx);
    outcome
}

/// Sets the next time to look for old offsets.
pub(crate) fn schedule(shard: &mut GroupShard, cx: &Circumstances<'_>) {
    let interval_ms = cx.settings.offsets.retention_check_interval_ms;
    shard.timers.set(cx, &ByteString::new(), TimerKind::OffsetExpiry, interval_ms);
}

/// A group's offsets that are too old, and how many are not.
fn sort_out(
    shard: &GroupShard,
    group_id: &ByteString,
    rule: &Rule,
    cx: &Circumstances<'_>,
) -> (Vec<OffsetCommitKey>, usize) {
    let (mut old, mut kept) = (Vec::new(), 0);
    for (topic, partitions) in shard.offsets.of_group(group_id).into_iter().flatten() {
        for (partition, committed) in partitions {
            let of =
                PartitionOfGroup { group_id: group_id.clone(), topic: topic.clone(), partition: *partition };
            if rule.is_over(topic, committed, cx) && !shard.offsets.is_pending(&of) {
                old.push(OffsetCommitKey::from(of));
            } else {
                kept += 1;
            }
        }
    }
    (old, kept)
}

impl Rule {
    fn of(group: &Group) -> Self {
        match group {
            Group::Classic(group) => Self::of_classic(group),
            Group::Consumer(group) => Self::FromCommit(group.subscribed_topics()),
        }
    }

    fn of_classic(group: &ClassicGroup) -> Self {
        match (group.has_protocol_type(), group.state()) {
            (false, _) => Self::FromCommit(BTreeSet::new()),
            (true, State::Empty) => Self::FromEmpty(group.state_since_ms()),
            (true, State::Stable) => group.subscribed_topics().map_or(Self::Never, Self::FromCommit),
            (true, State::PreparingRebalance | State::CompletingRebalance) => Self::Never,
        }
    }

    fn is_over(&self, topic: &ByteString, committed: &Committed, cx: &Circumstances<'_>) -> bool {
        let from_ms = match self {
            Self::Never => return false,
            Self::FromCommit(read) if read.contains(topic) => return false,
            Self::FromEmpty(Some(since_ms)) => *since_ms,
            Self::FromEmpty(None) | Self::FromCommit(_) => committed.commit_ms,
        };
        match committed.expire_ms {
            Some(expire_ms) => cx.now_ms >= expire_ms,
            None => cx.now_ms.saturating_sub(from_ms) >= cx.settings.offsets.retention_ms,
        }
    }
}
