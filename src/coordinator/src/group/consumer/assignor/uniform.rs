//! `uniform`: as even as can be over all topics together, and sticky.

use std::collections::{BTreeMap, BTreeSet};

use callboard_protocol::{ByteString, Uuid};

use super::super::partitions::{Partitions, TopicPartition};
use super::{Assignment, GroupSpec, MemberSpec};

/// How often all topics are gone through to level members with different subscriptions. Each round that moves
/// something makes the loads more even; in practice two or three are enough.
const MAX_LEVELLING_ROUNDS: usize = 64;

pub(super) fn assign(spec: &GroupSpec) -> Assignment {
    let mut wanted = spec.members.values().map(|member| &member.topics);
    match wanted.next() {
        None => Assignment::new(),
        Some(first) if wanted.all(|topics| topics == first) => same_topics(spec, first),
        Some(_) => different_topics(spec),
    }
}

/// All partitions of the topics, in order.
fn partitions_of<'a>(
    spec: &'a GroupSpec,
    topics: impl IntoIterator<Item = &'a Uuid>,
) -> impl Iterator<Item = TopicPartition> {
    topics.into_iter().flat_map(|topic| {
        let count = spec.partition_counts.get(topic).copied().unwrap_or(0);
        (0..count).map(|partition| (*topic, partition))
    })
}

/// Every member wants the same: each gets `total / members` or one more. A member keeps what it has, up to that.
fn same_topics(spec: &GroupSpec, topics: &BTreeSet<Uuid>) -> Assignment {
    let mut free: BTreeSet<TopicPartition> = partitions_of(spec, topics).collect();
    let quota = free.len() / spec.members.len();
    let mut extras = free.len() % spec.members.len();

    let mut assignment = Assignment::new();
    for (id, member) in &spec.members {
        let mut kept = Partitions::new();
        let mut room = quota;
        for partition in member.current.iter() {
            if !free.contains(&partition) {
                continue;
            }
            if room == 0 && extras > 0 && kept.len() == quota {
                extras -= 1;
                room = 1;
            }
            if room == 0 {
                break;
            }
            room -= 1;
            free.remove(&partition);
            kept.insert(partition.0, partition.1);
        }
        assignment.insert(id.clone(), kept);
    }

    let mut free = free.into_iter();
    for partitions in assignment.values_mut() {
        let mut room = quota.saturating_sub(partitions.len());
        if extras > 0 && partitions.len() <= quota {
            extras -= 1;
            room += 1;
        }
        for (topic, partition) in free.by_ref().take(room) {
            partitions.insert(topic, partition);
        }
    }
    assignment
}

/// Members want different topics. First everybody keeps what it has and still wants, then what is free goes to the
/// member with the least, topics with few subscribers first, then partitions move from members with more to members
/// with less until no move makes it more even.
fn different_topics(spec: &GroupSpec) -> Assignment {
    let members: Vec<(&ByteString, &MemberSpec)> = spec.members.iter().collect();
    let mut subscribers: BTreeMap<Uuid, Vec<usize>> = BTreeMap::new();
    for (index, (_, member)) in members.iter().enumerate() {
        for topic in &member.topics {
            subscribers.entry(*topic).or_default().push(index);
        }
    }
    let mut loads = vec![0_usize; members.len()];
    let mut owners: BTreeMap<Uuid, Vec<Option<usize>>> = BTreeMap::new();
    for topic in subscribers.keys() {
        let count = spec.partition_counts.get(topic).copied().unwrap_or(0).max(0) as usize;
        owners.insert(*topic, vec![None; count]);
    }
    for (index, (_, member)) in members.iter().enumerate() {
        for (topic, partition) in member.current.iter().filter(|(topic, _)| member.topics.contains(topic)) {
            let slot = owners.get_mut(&topic).and_then(|o| o.get_mut(usize::try_from(partition).ok()?));
            if let Some(slot @ None) = slot {
                *slot = Some(index);
                loads[index] += 1;
            }
        }
    }

    let mut by_choice: Vec<(&Uuid, &Vec<usize>)> = subscribers.iter().collect();
    by_choice.sort_by_key(|(topic, members)| (members.len(), **topic));
    for (topic, subscribed) in &by_choice {
        if let Some(slots) = owners.get_mut(topic) {
            fill(slots, subscribed, &mut loads);
        }
    }
    for _ in 0..MAX_LEVELLING_ROUNDS {
        let mut moved = false;
        for (topic, subscribed) in &by_choice {
            if let Some(slots) = owners.get_mut(topic) {
                moved |= level(slots, subscribed, &mut loads);
            }
        }
        if !moved {
            break;
        }
    }
    collect(&members, owners)
}

/// Gives what is free of one topic to its subscribers, always to the one with the least.
fn fill(slots: &mut [Option<usize>], subscribed: &[usize], loads: &mut [usize]) {
    if slots.iter().all(Option::is_some) {
        return;
    }
    let mut least: BTreeSet<(usize, usize)> =
        subscribed.iter().map(|member| (loads[*member], *member)).collect();
    for slot in slots.iter_mut().filter(|slot| slot.is_none()) {
        let Some((load, member)) = least.pop_first() else { return };
        *slot = Some(member);
        loads[member] = load + 1;
        least.insert((load + 1, member));
    }
}

/// Moves partitions of one topic from its most loaded owner to its least loaded subscriber while that makes the two
/// more even. Whether anything moved.
fn level(slots: &mut [Option<usize>], subscribed: &[usize], loads: &mut [usize]) -> bool {
    let mut least: BTreeSet<(usize, usize)> =
        subscribed.iter().map(|member| (loads[*member], *member)).collect();
    let mut owned: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (slot, owner) in slots.iter().enumerate() {
        if let Some(owner) = owner {
            owned.entry(*owner).or_default().push(slot);
        }
    }
    let mut most: BTreeSet<(usize, usize)> = owned.keys().map(|member| (loads[*member], *member)).collect();
    let mut moved = false;
    while let (Some(&(high, from)), Some(&(low, to))) = (most.last(), least.first()) {
        if high < low + 2 {
            break;
        }
        // The last partition moves: the ones kept are then the same as for members that want the same topics.
        let Some(slot) = owned.get_mut(&from).and_then(Vec::pop) else {
            most.remove(&(high, from));
            continue;
        };
        slots[slot] = Some(to);
        moved = true;
        owned.entry(to).or_default().push(slot);
        most.remove(&(low, to));
        for (member, before, after) in [(from, high, high - 1), (to, low, low + 1)] {
            least.remove(&(before, member));
            least.insert((after, member));
            most.remove(&(before, member));
            if owned.get(&member).is_some_and(|slots| !slots.is_empty()) {
                most.insert((after, member));
            }
            loads[member] = after;
        }
    }
    moved
}

fn collect(members: &[(&ByteString, &MemberSpec)], owners: BTreeMap<Uuid, Vec<Option<usize>>>) -> Assignment {
    let mut partitions = vec![Partitions::new(); members.len()];
    for (topic, slots) in owners {
        for (partition, owner) in slots.into_iter().enumerate() {
            if let Some(owner) = owner {
                partitions[owner].insert(topic, partition as i32);
            }
        }
    }
    members.iter().map(|(id, _)| (*id).clone()).zip(partitions).collect()
}
