//! Which broker settings change what the node does. The others are accepted, and a start says so once.

/// Whether a setting has an effect in this version.
pub(crate) fn has_effect(name: &str) -> bool {
    WITH_EFFECT.binary_search(&name).is_ok()
}

/// In the order of their names.
const WITH_EFFECT: &[&str] = &[
    "advertised.listeners",
    "auto.create.topics.enable",
    "broker.heartbeat.interval.ms",
    "broker.id",
    "broker.rack",
    "broker.session.timeout.ms",
    "callboard.chaos.crash.interval.ms",
    "callboard.chaos.seed",
    "callboard.durability",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "connections.max.idle.ms",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.election.backoff.max.ms",
    "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms",
    "controller.quorum.request.timeout.ms",
    "controller.quorum.retry.backoff.ms",
    "controller.quorum.voters",
    "default.replication.factor",
    "delete.topic.enable",
    "fetch.max.bytes",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
    "log.cleanup.policy",
    "log.dir",
    "log.dirs",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.flush.offset.checkpoint.interval.ms",
    "log.flush.scheduler.interval.ms",
    "log.index.interval.bytes",
    "log.index.size.max.bytes",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.roll.hours",
    "log.roll.jitter.hours",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.decompressed.message.bytes",
    "max.incremental.fetch.session.cache.slots",
    "max.request.partition.size.limit",
    "message.max.bytes",
    "metadata.log.dir",
    "metadata.log.max.record.bytes.between.snapshots",
    "metadata.log.max.snapshot.interval.ms",
    "metadata.log.segment.bytes",
    "metadata.log.segment.ms",
    "metadata.max.retention.bytes",
    "metadata.max.retention.ms",
    "min.insync.replicas",
    "node.id",
    "num.partitions",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "offsets.topic.segment.bytes",
    "process.roles",
    "producer.id.expiration.ms",
    "queued.max.request.bytes",
    "queued.max.requests",
    "replica.high.watermark.checkpoint.interval.ms",
    "security.inter.broker.protocol",
    "socket.listen.backlog.size",
    "socket.request.max.bytes",
    "transaction.max.timeout.ms",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    "transaction.state.log.segment.bytes",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_names_settings() {
        assert!(WITH_EFFECT.is_sorted());
        for name in WITH_EFFECT {
            assert!(super::super::definition::broker().get(name).is_some(), "{name}");
        }
    }
}
