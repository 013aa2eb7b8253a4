use callboard_protocol::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse};

use crate::fixture::Cluster;

fn allocate(cluster: &mut Cluster, broker_id: i32, broker_epoch: i64) -> AllocateProducerIdsResponse {
    let request = AllocateProducerIdsRequest { broker_id, broker_epoch, ..Default::default() };
    cluster.run(|controller, _| controller.allocate_producer_ids(&request))
}

#[test]
fn blocks_of_a_thousand_follow_one_another() {
    let mut cluster = Cluster::with_brokers(2, &[]);
    for (broker, start) in [(1, 0), (2, 1_000), (1, 2_000)] {
        let epoch = cluster.epoch(broker);
        let reply = allocate(&mut cluster, broker, epoch);
        assert_eq!((reply.error_code, reply.producer_id_start, reply.producer_id_len), (0, start, 1_000));
    }
    assert_eq!(cluster.image().next_producer_id, 3_000);
}

#[test]
fn only_to_registered_brokers() {
    let mut cluster = Cluster::one();
    let epoch = cluster.epoch(1);
    assert_eq!(allocate(&mut cluster, 1, epoch + 1).error_code, 77);
    assert_eq!(allocate(&mut cluster, 5, epoch).error_code, 102);
    assert_eq!(cluster.image().next_producer_id, 0);
}
