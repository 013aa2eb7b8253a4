//! Committed offsets.

use callboard_coordinator::group::GroupRecord;
use callboard_coordinator::runtime::{Entry, Machine, Producer};
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use callboard_protocol::messages::{
    ConsumerProtocolSubscription, JoinGroupRequest, Message, OffsetCommitKey, OffsetCommitRequest,
    OffsetCommitValue, OffsetDeleteRequest, ShareGroupMetadataKey, StreamsGroupMetadataKey,
};

use super::talk::{GROUP, Talk, commit, commit_as, join, sync};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[test]
fn anybody_may_commit_while_there_are_no_members() {
    let mut talk = Talk::new();
    assert_eq!(talk.committed("t"), Ok(-1));
    assert_eq!(talk.commit(commit("t", 5)), ErrorCode::None);
    assert_eq!((talk.committed("t"), talk.state().as_str()), (Ok(5), "Empty"));
    assert_eq!(talk.group().protocol_type(), "", "it has only offsets");
    let member = talk.stable(1).remove(0);
    assert_eq!(talk.commit(commit("t", 6)), ErrorCode::UnknownMemberId);
    assert_eq!(talk.commit(commit_as(&member, "t", 7)), ErrorCode::None);
    talk.fail_over();
    assert_eq!(talk.committed("t"), Ok(7));
}

#[test]
fn a_member_commits_in_its_generation() {
    let mut talk = Talk::new();
    let member = talk.stable(1).remove(0);
    let mut late = member.clone();
    late.generation_id -= 1;
    assert_eq!(talk.commit(commit_as(&late, "t", 1)), ErrorCode::IllegalGeneration);
    late.member_id = "stranger".into();
    assert_eq!(talk.commit(commit_as(&late, "t", 1)), ErrorCode::UnknownMemberId);
    // What it has read so far is to be committed while the next generation is prepared, and not once it begins.
    let newcomer = talk.join();
    assert_eq!(talk.commit(commit_as(&member, "t", 2)), ErrorCode::None);
    let again = talk.ask(9, join(&member.member_id));
    let (first, second) = (talk.joined(again), talk.joined(newcomer));
    assert_eq!(talk.commit(commit_as(&first, "t", 3)), ErrorCode::RebalanceInProgress);
    talk.tell(5, sync(&first, &[]));
    assert_eq!(talk.commit(commit_as(&second, "t", 3)), ErrorCode::None);
    assert_eq!(talk.committed("t"), Ok(3));
}

#[test]
fn a_generation_of_a_group_that_is_not_there_is_an_error_by_version() {
    let mut talk = Talk::new();
    let request = || OffsetCommitRequest { generation_id_or_member_epoch: 3, ..commit("t", 1) };
    let error = |talk: &mut Talk, version| -> ErrorCode {
        talk.tell(version, request()).topics[0].partitions[0].error_code.into()
    };
    assert_eq!(error(&mut talk, 8), ErrorCode::IllegalGeneration);
    assert_eq!(error(&mut talk, 9), ErrorCode::GroupIdNotFound);
}

#[test]
fn a_commit_with_too_long_a_text_is_refused_and_others_stand() {
    let mut talk = Talk::new();
    let mut request = commit("t", 5);
    let text = |bytes: usize| Some("m".repeat(bytes).into());
    let mut second = request.topics[0].partitions[0].clone();
    second.partition_index = 1;
    request.topics[0].partitions.push(second);
    request.topics[0].partitions[0].committed_metadata = text(4_096);
    request.topics[0].partitions[1].committed_metadata = text(4_097);
    let answers = talk.tell(9, request).topics.remove(0).partitions;
    let errors: Vec<ErrorCode> = answers.iter().map(|answer| answer.error_code.into()).collect();
    assert_eq!(errors, [ErrorCode::None, ErrorCode::OffsetMetadataTooLarge]);
    assert_eq!(talk.committed("t"), Ok(5));
}

#[test]
fn offsets_of_a_group_without_members_go_a_week_after_the_last_one_left() {
    let mut talk = Talk::new();
    talk.fail_over();
    let member = talk.stable(1).remove(0);
    assert_eq!(talk.commit(commit_as(&member, "t", 5)), ErrorCode::None);
    talk.wait(6 * DAY_MS);
    assert_eq!((talk.state().as_str(), talk.committed("t")), ("Empty", Ok(5)), "its session is long over");
    talk.wait(2 * DAY_MS);
    assert_eq!((talk.state().as_str(), talk.committed("t")), ("Dead", Ok(-1)));
    talk.fail_over();
    assert_eq!((talk.state().as_str(), talk.committed("t")), ("Dead", Ok(-1)));
}

#[test]
fn offsets_without_a_group_go_a_week_after_their_commit_or_when_they_say() {
    let mut talk = Talk::new();
    talk.fail_over();
    talk.commit(commit("old", 1));
    talk.commit(OffsetCommitRequest { retention_time_ms: DAY_MS, ..commit("short", 2) });
    talk.wait(2 * DAY_MS);
    talk.commit(commit("new", 3));
    assert_eq!((talk.committed("old"), talk.committed("short")), (Ok(1), Ok(-1)));
    talk.wait(6 * DAY_MS);
    assert_eq!((talk.committed("old"), talk.committed("new")), (Ok(-1), Ok(3)));
    assert_eq!(talk.state(), "Empty", "it has something left");
}

#[test]
fn what_live_consumers_read_stays_and_the_rest_goes() {
    let mut talk = Talk::new();
    talk.fail_over();
    let subscription = ConsumerProtocolSubscription { topics: vec!["read".into()], ..Default::default() };
    let mut metadata = vec![0, 0];
    metadata.extend(subscription.to_bytes(0).unwrap());
    let session_ms = 30 * 60 * 1_000;
    let mut request = JoinGroupRequest { session_timeout_ms: session_ms, ..join("") };
    request.protocols[0].metadata = metadata.clone().into();
    request.protocols[1].metadata = metadata.into();
    let ticket = talk.ask(3, request);
    let member = talk.joined(ticket);
    talk.tell(5, sync(&member, &[]));
    talk.commit(commit_as(&member, "read", 1));
    talk.commit(commit_as(&member, "former", 2));
    let delete = |topic: &'static str| OffsetDeleteRequest {
        group_id: GROUP.into(),
        topics: vec![OffsetDeleteRequestTopic {
            name: topic.into(),
            partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
        }],
    };
    let error: ErrorCode = talk.tell(0, delete("read")).topics[0].partitions[0].error_code.into();
    assert_eq!(error, ErrorCode::GroupSubscribedToTopic);
    let beat_ms = i64::from(session_ms) / 2;
    for _ in 0..8 * DAY_MS / beat_ms {
        talk.wait(beat_ms);
        assert_eq!(talk.beat(&member), ErrorCode::None);
    }
    assert_eq!((talk.committed("read"), talk.committed("former")), (Ok(1), Ok(-1)));
}

#[test]
fn offsets_go_with_their_topic() {
    let mut talk = Talk::new();
    talk.commit(commit("gone", 1));
    talk.commit(commit("kept", 2));
    talk.delete_topic("gone");
    assert_eq!((talk.committed("gone"), talk.committed("kept")), (Ok(-1), Ok(2)));
    talk.fail_over();
    assert_eq!((talk.committed("gone"), talk.committed("kept")), (Ok(-1), Ok(2)));
}

/// A commit in a producer's transaction, as the log has it.
fn pending(talk: &mut Talk, producer: Producer, offset: i64) {
    let key = OffsetCommitKey { group: GROUP.into(), topic: "t".into(), partition: 0 };
    let value = OffsetCommitValue { offset, ..Default::default() };
    talk.shard.replay(&Entry::Record(GroupRecord::new(key, value, 4), Some(producer))).expect("a commit");
}

fn end(talk: &mut Talk, producer: Producer, committed: bool) {
    talk.shard.replay(&Entry::Marker { producer, committed }).expect("a marker");
}

#[test]
fn offsets_of_a_transaction_count_once_it_is_committed() {
    let mut talk = Talk::new();
    let (first, second) = (Producer { id: 1, epoch: 0 }, Producer { id: 2, epoch: 0 });
    talk.commit(commit("t", 1));
    pending(&mut talk, first, 10);
    pending(&mut talk, second, 20);
    assert_eq!(talk.committed("t"), Err(ErrorCode::UnstableOffsetCommit));
    end(&mut talk, first, false);
    assert_eq!(talk.committed("t"), Err(ErrorCode::UnstableOffsetCommit), "the other one is open");
    end(&mut talk, second, true);
    assert_eq!(talk.committed("t"), Ok(20));
    // A commit that was made later than what the transaction holds stands.
    pending(&mut talk, first, 30);
    talk.commit(commit("t", 40));
    end(&mut talk, first, true);
    assert_eq!(talk.committed("t"), Ok(40));
}

#[test]
fn records_of_groups_that_are_not_known_yet_are_passed_over() {
    let mut talk = Talk::new();
    talk.commit(commit("t", 1));
    let share = GroupRecord::tombstone(ShareGroupMetadataKey { group_id: "s".into() });
    let streams = GroupRecord::tombstone(StreamsGroupMetadataKey { group_id: "s".into() });
    talk.log.extend([share, streams]);
    talk.fail_over();
    assert_eq!(talk.committed("t"), Ok(1));
}
