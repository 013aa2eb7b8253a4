//! Which brokers hold the replicas of new partitions.

use std::collections::BTreeMap;

use callboard_protocol::ByteString;

use super::Context;
use crate::image::ClusterImage;

/// The brokers of one rack: those that can lead, then the fenced ones.
struct Rack {
    active: Vec<i32>,
    fenced: Vec<i32>,
}

/// Spreads the replicas of `partitions` new partitions over racks and brokers.
///
/// Partition by partition, the next rack gives the leader and the racks after it a replica each; within a rack
/// brokers take turns. Fenced brokers get replicas only when the others do not suffice, and never lead. The start
/// is random, so that small topics spread too. The error is Kafka's text for INVALID_REPLICATION_FACTOR.
pub(super) fn place(
    cluster: &ClusterImage,
    partitions: usize,
    replication_factor: i16,
    ctx: &mut Context<'_>,
) -> Result<Vec<Vec<i32>>, String> {
    let mut racks = racks(cluster);
    let factor = usize::try_from(replication_factor).unwrap_or(0);
    if factor == 0 {
        return Err(format!(
            "Invalid replication factor {replication_factor}: the replication factor must be positive."
        ));
    }
    let usable: usize = racks.iter().map(|rack| rack.active.len() + rack.fenced.len()).sum();
    if racks.iter().all(|rack| rack.active.is_empty()) {
        return Err("All brokers are currently fenced.".to_string());
    }
    if factor > usable {
        return Err(format!(
            "The target replication factor of {factor} cannot be reached because only {usable} broker(s) are \
             registered or some brokers have all their log directories cordoned."
        ));
    }
    let mut start = |len: usize| if len == 0 { 0 } else { ((ctx.random)() % len as u64) as usize };
    for rack in &mut racks {
        let by = start(rack.active.len());
        rack.active.rotate_left(by);
        let by = start(rack.fenced.len());
        rack.fenced.rotate_left(by);
    }
    let first_rack = start(racks.len());
    racks.rotate_left(first_rack);
    Ok((0..partitions).map(|number| replicas_of(&racks, number, factor)).collect())
}

fn racks(cluster: &ClusterImage) -> Vec<Rack> {
    let mut by_name: BTreeMap<Option<ByteString>, Rack> = BTreeMap::new();
    for broker in cluster.brokers.values() {
        if broker.usable_log_dirs().next().is_none() {
            continue;
        }
        let rack = by_name
            .entry(broker.rack.clone())
            .or_insert_with(|| Rack { active: Vec::new(), fenced: Vec::new() });
        if broker.is_active() { rack.active.push(broker.id) } else { rack.fenced.push(broker.id) }
    }
    by_name.into_values().collect()
}

/// The replicas of one partition: first all active brokers in stripes over the racks, then the fenced ones.
fn replicas_of(racks: &[Rack], number: usize, factor: usize) -> Vec<i32> {
    let mut out = Vec::with_capacity(factor);
    for pick in [|rack: &Rack| rack.active.clone(), |rack: &Rack| rack.fenced.clone()] {
        let mut lists: Vec<Vec<i32>> = racks.iter().map(pick).filter(|list| !list.is_empty()).collect();
        if lists.is_empty() {
            continue;
        }
        let turn = number / lists.len();
        for list in &mut lists {
            let by = turn % list.len();
            list.rotate_left(by);
        }
        let first = number % lists.len();
        lists.rotate_left(first);
        let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
        let stripes = (0..longest).flat_map(|depth| lists.iter().filter_map(move |list| list.get(depth)));
        out.extend(stripes.copied().take(factor - out.len()));
    }
    out
}
