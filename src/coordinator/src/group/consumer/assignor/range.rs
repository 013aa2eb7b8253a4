//! `range`: the partitions of a topic are cut into ranges, one a member, in the order of the members.
//!
//! The order is the same for each topic, so topics with as many partitions and the same subscribers give a member
//! the same partition numbers: what joins of streams need. Static members come in the order of their instance ids,
//! so that a restarted one gets its range again.

use std::collections::BTreeMap;

use callboard_protocol::{ByteString, Uuid};

use super::{Assignment, GroupSpec, MemberSpec};

pub(super) fn assign(spec: &GroupSpec) -> Assignment {
    let mut order: Vec<(&ByteString, &MemberSpec)> = spec.members.iter().collect();
    // Those with an instance id first, in its order; the others in the order of their member ids.
    order.sort_by_key(|(id, member)| (member.instance_id.is_none(), member.instance_id.as_ref(), *id));

    let mut subscribers: BTreeMap<Uuid, Vec<&ByteString>> = BTreeMap::new();
    for (id, member) in &order {
        for topic in &member.topics {
            subscribers.entry(*topic).or_default().push(id);
        }
    }
    let mut assignment: Assignment = spec.members.keys().map(|id| (id.clone(), Default::default())).collect();
    for (topic, ids) in subscribers {
        let count = spec.partition_counts.get(&topic).copied().unwrap_or(0).max(0) as usize;
        for (range, id) in ranges(count, ids.len()).zip(ids) {
            if let Some(partitions) = assignment.get_mut(id) {
                range.for_each(|partition| partitions.insert(topic, partition as i32));
            }
        }
    }
    assignment
}

/// Cuts `count` into `parts` ranges of nearly the same length, the longer ones first.
fn ranges(count: usize, parts: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let (least, longer) = (count / parts.max(1), count % parts.max(1));
    (0..parts).map(move |i| {
        let start = i * least + i.min(longer);
        start..start + least + usize::from(i < longer)
    })
}
