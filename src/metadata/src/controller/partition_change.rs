//! One partition's change: who stays in sync, who is eligible, who leads.

use callboard_protocol::Uuid;
use callboard_protocol::messages::PartitionChangeRecord;
use callboard_protocol::messages::metadata_record::MetadataRecord;

use crate::image::{LeaderRecoveryState, NO_LEADER, PartitionRegistration};
use crate::record::{PARTITION_VERSION, VersionedRecord};

/// How a leader is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Election {
    /// Keep the leader if it may stay; otherwise anyone who loses nothing.
    Online,
    /// The first replica if it may lead; otherwise as `Online`.
    Preferred,
    /// As `Online`, and failing that any replica, losing what it lacks.
    Unclean,
}

/// What a change of a partition is decided by.
pub(super) struct PartitionChange<'a> {
    /// The partition before.
    pub(super) partition: &'a PartitionRegistration,
    /// Who is to be in sync, before any election.
    pub(super) isr: Vec<i32>,
    /// A broker that may have lost records: it's out of the eligible replicas.
    pub(super) unclean_shutdown: Option<i32>,
    /// Which brokers may lead.
    pub(super) may_lead: &'a dyn Fn(i32) -> bool,
    /// How to choose.
    pub(super) election: Election,
    /// `min.insync.replicas` of the topic.
    pub(super) min_insync_replicas: usize,
    /// Whether eligible leader replicas are kept (`eligible.leader.replicas.version` 1).
    pub(super) elr_enabled: bool,
}

struct Chosen {
    leader: i32,
    /// Records may be missing on the leader.
    unclean: bool,
}

impl PartitionChange<'_> {
    /// The record of the change, or `None` when all stays as it is.
    pub(super) fn build(self, topic_id: Uuid, partition_id: i32) -> Option<VersionedRecord> {
        let before = self.partition;
        let mut isr = self.isr.clone();
        if isr.is_empty() && !self.elr_enabled {
            // Without eligible replicas the last one in sync is all that is known to have everything.
            isr.clone_from(&before.isr);
        }
        let elr = self.eligible(&isr);
        let chosen = self.choose(&isr, &elr);
        if chosen.leader != NO_LEADER && !isr.contains(&chosen.leader) {
            isr = vec![chosen.leader];
        }
        let enough = isr.len() >= self.min_insync_replicas.min(before.replicas.len());
        let (elr, last_known_elr) = if enough || chosen.unclean || !self.elr_enabled {
            (Vec::new(), Vec::new())
        } else {
            (self.eligible(&isr), self.last_known(&isr))
        };
        let recovery_state = match chosen.unclean && chosen.leader != before.leader {
            true => LeaderRecoveryState::Recovering,
            false => before.leader_recovery_state,
        };
        let mut record = PartitionChangeRecord { partition_id, topic_id, ..Default::default() };
        let unchanged = record.clone();
        if chosen.leader != before.leader {
            record.leader = chosen.leader;
        }
        if recovery_state != before.leader_recovery_state {
            record.leader_recovery_state = recovery_state.value();
        }
        record.isr = (isr != before.isr).then_some(isr);
        record.eligible_leader_replicas = (elr != before.elr).then_some(elr);
        record.last_known_elr = (last_known_elr != before.last_known_elr).then_some(last_known_elr);
        (record != unchanged)
            .then(|| VersionedRecord::new(MetadataRecord::PartitionChangeRecord(record), PARTITION_VERSION))
    }

    /// Replicas out of sync that still have all committed records: those that were in sync or eligible before.
    fn eligible(&self, isr: &[i32]) -> Vec<i32> {
        if !self.elr_enabled {
            return Vec::new();
        }
        let mut out: Vec<i32> = Vec::new();
        for replica in self.partition.elr.iter().chain(&self.partition.isr) {
            if !isr.contains(replica) && Some(*replica) != self.unclean_shutdown && !out.contains(replica) {
                out.push(*replica);
            }
        }
        out
    }

    /// Whom to fall back on: the last leader, remembered once nobody is in sync.
    fn last_known(&self, isr: &[i32]) -> Vec<i32> {
        if isr.is_empty() && self.partition.leader != NO_LEADER {
            vec![self.partition.leader]
        } else {
            self.partition.last_known_elr.clone()
        }
    }

    fn choose(&self, isr: &[i32], elr: &[i32]) -> Chosen {
        let clean = |leader| Chosen { leader, unclean: false };
        let unclean = |leader| Chosen { leader, unclean: true };
        // Eligible replicas count only when nobody is in sync.
        let trusted = if isr.is_empty() { elr } else { isr };
        let may = |replica: i32| trusted.contains(&replica) && (self.may_lead)(replica);
        let replicas = &self.partition.replicas;
        let preferred = replicas.first().copied().filter(|first| may(*first));
        if let (Election::Preferred, Some(first)) = (self.election, preferred) {
            return clean(first);
        }
        if may(self.partition.leader) {
            return clean(self.partition.leader);
        }
        if let Some(replica) = replicas.iter().copied().find(|replica| may(*replica)) {
            return clean(replica);
        }
        if isr.is_empty()
            && elr.is_empty()
            && let [last] = self.partition.last_known_elr[..]
            && (self.may_lead)(last)
        {
            return unclean(last);
        }
        if self.election == Election::Unclean
            && let Some(replica) = replicas.iter().copied().find(|replica| (self.may_lead)(*replica))
        {
            return unclean(replica);
        }
        clean(NO_LEADER)
    }
}
