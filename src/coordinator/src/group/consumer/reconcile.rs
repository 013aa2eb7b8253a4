//! How a member gets from what it has to its target: give up first, then take what is free (KIP-848).

use callboard_protocol::Uuid;

use super::member::{Member, MemberState};
use super::partitions::{AssignedPartitions, Partitions};

/// What a member's next step depends on beside itself.
pub struct Aim<'a> {
    /// The epoch of the group's assignment.
    pub epoch: i32,
    /// What that assignment gives the member.
    pub target: &'a Partitions,
    /// Whether the member wants a topic. While a new assignment is due, the target may still have topics that it has
    /// left: it must not keep them.
    pub wants: &'a dyn Fn(Uuid) -> bool,
    /// Whether a partition belongs to nobody, or to this member.
    pub is_free: &'a dyn Fn(Uuid, i32) -> bool,
    /// What the member says that it has; `None` if it did not say.
    pub owned: Option<&'a Partitions>,
    /// Whether it has just changed what it wants.
    pub subscription_changed: bool,
}

impl Aim<'_> {
    /// The member after its next step; the same if there is none to take.
    pub fn step(&self, member: &Member) -> Member {
        match member.state {
            MemberState::Stable if member.epoch == self.epoch && !self.subscription_changed => member.clone(),
            MemberState::UnrevokedPartitions if !self.subscription_changed && !self.has_given_up(member) => {
                member.clone()
            }
            // A state of a later Kafka: only a member that says what it has can be trusted to start from there.
            MemberState::Unknown if self.owned.is_none() => member.clone(),
            MemberState::Stable
            | MemberState::UnrevokedPartitions
            | MemberState::UnreleasedPartitions
            | MemberState::Unknown => self.towards_target(member),
        }
    }

    fn has_given_up(&self, member: &Member) -> bool {
        self.owned.is_some_and(|owned| {
            member.pending_revocation.iter().all(|(topic, partition, _)| !owned.contains(topic, partition))
        })
    }

    fn towards_target(&self, member: &Member) -> Member {
        let mut next = member.clone();
        next.assigned = AssignedPartitions::new();
        next.pending_revocation = AssignedPartitions::new();
        let was_revoking = member.state == MemberState::UnrevokedPartitions;
        for (topic, partition, epoch) in member.assigned.iter() {
            if self.target.contains(topic, partition) && (self.wants)(topic) {
                next.assigned.insert(topic, partition, epoch);
            } else {
                next.pending_revocation.insert(topic, partition, epoch);
            }
        }
        // What it was told to give up and still has stays on that list, wherever its target has moved since.
        if was_revoking && !self.has_given_up(member) {
            for (topic, partition, epoch) in member.pending_revocation.iter() {
                next.pending_revocation.insert(topic, partition, epoch);
            }
        }
        if !next.pending_revocation.is_empty() && !self.has_given_up(&next) {
            next.state = MemberState::UnrevokedPartitions;
            next.previous_epoch = member.epoch;
            return next;
        }
        next.pending_revocation = AssignedPartitions::new();

        let mut waits = false;
        for (topic, partition) in self.target.iter() {
            if next.assigned.contains(topic, partition) || !(self.wants)(topic) {
                continue;
            }
            if (self.is_free)(topic, partition) {
                next.assigned.insert(topic, partition, self.epoch);
            } else {
                waits = true;
            }
        }
        next.state = if waits { MemberState::UnreleasedPartitions } else { MemberState::Stable };
        next.previous_epoch = member.epoch;
        next.epoch = self.epoch;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Uuid = Uuid::from_u128(7);
    const U: Uuid = Uuid::from_u128(8);

    fn set(topic: Uuid, partitions: &[i32]) -> Partitions {
        partitions.iter().map(|p| (topic, *p)).collect()
    }

    fn has(topic: Uuid, partitions: &[i32], epoch: i32) -> AssignedPartitions {
        partitions.iter().map(|p| (topic, *p, epoch)).collect()
    }

    fn member(state: MemberState, epoch: i32, assigned: AssignedPartitions) -> Member {
        Member { state, epoch, previous_epoch: epoch - 1, assigned, ..Member::new("m".into()) }
    }

    struct Case {
        target: Partitions,
        taken: Vec<i32>,
        owned: Option<Partitions>,
        wants_u_only: bool,
        changed: bool,
    }

    impl Case {
        fn new(target: Partitions) -> Self {
            Self { target, taken: vec![], owned: None, wants_u_only: false, changed: false }
        }

        fn step(&self, epoch: i32, member: &Member) -> Member {
            Aim {
                epoch,
                target: &self.target,
                wants: &|topic| !self.wants_u_only || topic == U,
                is_free: &|_, partition| !self.taken.contains(&partition),
                owned: self.owned.as_ref(),
                subscription_changed: self.changed,
            }
            .step(member)
        }
    }

    #[test]
    fn a_stable_member_at_the_epoch_stays() {
        let member = member(MemberState::Stable, 3, has(T, &[0], 2));
        assert_eq!(Case::new(set(T, &[1])).step(3, &member), member);
    }

    #[test]
    fn what_is_free_is_taken_at_once_with_the_epoch_it_came_with() {
        let next = Case::new(set(T, &[0, 1])).step(3, &member(MemberState::Stable, 2, has(T, &[0], 1)));
        assert_eq!((next.state, next.epoch, next.previous_epoch), (MemberState::Stable, 3, 2));
        assert_eq!(next.assigned, [(T, 0, 1), (T, 1, 3)].into_iter().collect());
    }

    #[test]
    fn what_is_not_free_is_waited_for() {
        let mut case = Case::new(set(T, &[0, 1]));
        case.taken = vec![1];
        let waiting = case.step(3, &member(MemberState::Stable, 2, has(T, &[], 0)));
        assert_eq!((waiting.state, waiting.epoch), (MemberState::UnreleasedPartitions, 3));
        assert_eq!(waiting.assigned, has(T, &[0], 3));
        case.taken.clear();
        let next = case.step(3, &waiting);
        assert_eq!((next.state, next.assigned.len()), (MemberState::Stable, 2));
    }

    #[test]
    fn partitions_are_given_up_before_the_epoch_moves() {
        let mut case = Case::new(set(T, &[0, 2]));
        let revoking = case.step(3, &member(MemberState::Stable, 2, has(T, &[0, 1], 2)));
        assert_eq!((revoking.state, revoking.epoch), (MemberState::UnrevokedPartitions, 2));
        assert_eq!(revoking.previous_epoch, 2);
        assert_eq!((&revoking.assigned, &revoking.pending_revocation), (&has(T, &[0], 2), &has(T, &[1], 2)));
        assert_eq!(case.step(3, &revoking), revoking, "it did not say what it has");
        case.owned = Some(set(T, &[0, 1]));
        assert_eq!(case.step(3, &revoking), revoking, "it still has it");
        case.owned = Some(set(T, &[0]));
        let next = case.step(4, &revoking);
        assert_eq!((next.state, next.epoch), (MemberState::Stable, 4));
        assert_eq!(next.assigned, [(T, 0, 2), (T, 2, 4)].into_iter().collect());
    }

    #[test]
    fn a_revocation_is_skipped_if_the_member_says_that_it_has_nothing_of_it() {
        let mut case = Case::new(set(T, &[0]));
        case.owned = Some(set(T, &[]));
        let next = case.step(3, &member(MemberState::Stable, 2, has(T, &[0, 1], 2)));
        assert_eq!((next.state, next.epoch, next.assigned), (MemberState::Stable, 3, has(T, &[0], 2)));
    }

    #[test]
    fn a_topic_no_longer_wanted_is_given_up_before_the_next_assignment() {
        let mut case = Case::new(set(T, &[0]));
        (case.wants_u_only, case.changed) = (true, true);
        let next = case.step(3, &member(MemberState::Stable, 3, has(T, &[0], 3)));
        assert_eq!((next.state, next.epoch), (MemberState::UnrevokedPartitions, 3));
        assert!(next.assigned.is_empty());
    }

    #[test]
    fn what_must_be_given_up_stays_on_the_list_when_the_target_changes() {
        let revoking = Member {
            pending_revocation: has(T, &[1], 2),
            ..member(MemberState::UnrevokedPartitions, 2, has(T, &[0], 2))
        };
        let mut case = Case::new(set(T, &[0, 1]));
        case.changed = true;
        let next = case.step(3, &revoking);
        assert_eq!((next.state, next.epoch), (MemberState::UnrevokedPartitions, 2));
        assert_eq!(next.pending_revocation, has(T, &[1], 2));
    }
}
