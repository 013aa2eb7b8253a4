use crate::fixture::Cluster;

#[test]
fn a_clone_brings_everything_back() {
    let mut cluster = Cluster::one();
    cluster.topic("kept", 2, 1);
    let good = cluster.controller.clone();
    let image = cluster.image().clone();
    cluster.topic("lost", 2, 1);
    cluster.heartbeat(1, |request| request.want_shut_down = true);
    assert_ne!(*cluster.image(), image);
    cluster.controller.roll_back_to(good);
    assert_eq!(*cluster.image(), image);
    cluster.topic("lost", 3, 1);
    assert_eq!(cluster.image().topics.by_name("lost").unwrap().partitions.len(), 3);
}

#[test]
fn what_was_heard_from_brokers_stays() {
    let mut cluster = Cluster::one();
    let good = cluster.controller.clone();
    cluster.now_ms += 8_000;
    cluster.heartbeat(1, |_| {});
    cluster.controller.roll_back_to(good);
    let end = cluster.now_ms + 9_001;
    assert_eq!(cluster.controller.next_session_end_ms(), Some(end));
}

#[test]
fn records_alone_rebuild_the_image() {
    let mut cluster = Cluster::with_brokers(3, &["a", "b", "c"]);
    cluster.topic("t", 5, 3);
    cluster.heartbeat(2, |request| request.want_fence = true);
    let mut rebuilt = callboard_metadata::image::Image::default();
    for record in cluster.image().to_records() {
        rebuilt.apply(&record.record).unwrap();
    }
    assert_eq!(rebuilt, *cluster.image());
}
