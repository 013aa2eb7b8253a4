//! Subscriptions by pattern.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::ConsumerGroupHeartbeatRequest;

use super::stage::*;

fn wants(pattern: &'static str) -> impl FnOnce(&mut ConsumerGroupHeartbeatRequest) {
    move |request| {
        joins(&[])(request);
        request.subscribed_topic_names = None;
        request.subscribed_topic_regex = Some(pattern.into());
    }
}

#[test]
fn a_pattern_is_looked_up_apart_from_the_shard() {
    let mut stage = Stage::new();
    let u = stage.cluster.add("u1", 2);
    stage.cluster.add("other", 1);
    assert_eq!(stage.beat("a", 0, wants("u.*")), (Ok(1), gets_nothing()), "nothing is known yet");
    assert_eq!(stage.beat("a", 1, nothing), (Ok(1), None));
    assert_eq!(stage.look_ups.len(), 1, "it is asked for once");
    stage.look_up();
    assert_eq!(stage.beat("a", 1, nothing), (Ok(2), gets(u, &[0, 1])));
    stage.advance(1_100);
    assert_eq!(stage.beat("b", 0, wants("u.*")), (Ok(3), gets_nothing()), "the pattern is known");
    assert!(stage.look_ups.is_empty());
}

#[test]
fn new_topics_are_found() {
    let mut stage = Stage::new();
    let one = stage.cluster.add("u1", 1);
    let _ = stage.beat("a", 0, wants("u.*"));
    stage.look_up();
    assert_eq!(stage.beat("a", 1, nothing), (Ok(2), gets(one, &[0])));
    let two = stage.cluster.add("u2", 1);
    let _ = stage.beat("a", 2, nothing);
    assert!(stage.look_ups.is_empty(), "not so soon");
    stage.advance(10_000);
    assert_eq!(stage.beat("a", 2, nothing), (Ok(2), None));
    stage.look_up();
    assert_eq!(stage.beat("a", 2, nothing), (Ok(3), Some(vec![(one, vec![0]), (two, vec![0])])));
    stage.advance(10_000);
    let _ = stage.beat("a", 3, nothing);
    assert!(stage.look_ups.is_empty(), "nothing has changed");
    stage.cluster.add("other", 1);
    let _ = stage.beat("a", 3, nothing);
    let before = stage.log.len();
    stage.look_up();
    assert_eq!(stage.log.len(), before, "nothing new was found, and nothing is written");
}

#[test]
fn a_pattern_that_nobody_has_any_more_is_forgotten() {
    let mut stage = Stage::new();
    let u = stage.cluster.add("u", 1);
    let v = stage.cluster.add("v", 1);
    let _ = stage.beat("a", 0, wants("u.*"));
    stage.look_up();
    assert_eq!(stage.beat("a", 1, nothing), (Ok(2), gets(u, &[0])));
    let change =
        |request: &mut ConsumerGroupHeartbeatRequest| request.subscribed_topic_regex = Some("v.*".into());
    assert_eq!(stage.beat("a", 2, change), (Ok(2), gets_nothing()), "it lets go of what it does not want");
    stage.look_up();
    assert_eq!(stage.group("g").regexes.keys().map(|regex| regex.to_string()).collect::<Vec<_>>(), ["v.*"]);
    stage.advance(1_000);
    let lets_go = |request: &mut ConsumerGroupHeartbeatRequest| request.topic_partitions = Some(vec![]);
    assert_eq!(stage.beat("a", 2, lets_go).1, gets(v, &[0]));
    let epoch = stage.group("g").assignment_epoch();
    assert_eq!(stage.beat("a", epoch, |request| request.member_epoch = -1).0, Ok(-1));
    assert!(stage.group("g").regexes.is_empty());
}

#[test]
fn a_pattern_must_be_one() {
    let mut stage = Stage::new();
    assert_eq!(stage.beat("a", 0, wants("[")).0, Err(ErrorCode::InvalidRegularExpression));
    assert_eq!(stage.beat("a", 0, wants("")), (Ok(1), gets_nothing()), "an empty one is none");
    assert!(stage.look_ups.is_empty());
}

#[test]
fn a_look_up_that_was_lost_is_asked_for_again() {
    let mut stage = Stage::new();
    stage.cluster.add("u", 1);
    let _ = stage.beat("a", 0, wants("u.*"));
    stage.look_ups.clear();
    stage.advance(10_000);
    let _ = stage.beat("a", 1, nothing);
    assert_eq!(stage.look_ups.len(), 1);
    stage.look_ups.clear();
    stage.fail_over();
    let _ = stage.beat("a", 1, nothing);
    assert_eq!(stage.look_ups.len(), 1);
}
