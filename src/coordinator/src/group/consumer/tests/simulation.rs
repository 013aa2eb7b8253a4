//! Many members that join, crash, change their minds and lose answers, while brokers fail over. After each step memory is
//! what the log says and no partition has two owners; in the end every member has what it is to have.

use std::collections::{BTreeMap, BTreeSet};

use callboard_protocol::{ByteString, ErrorCode, Uuid};

use super::stage::*;
use crate::group::consumer::GroupState;

const TOPICS: [&str; 3] = ["t", "u", "v"];

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// A client as the consumer protocol has it: it gives up at once what it is told to, and says what it has.
struct Client {
    id: ByteString,
    instance: Option<&'static str>,
    pattern: bool,
    topics: Vec<&'static str>,
    epoch: i32,
    has: BTreeSet<(Uuid, i32)>,
    /// What is to be told with the next heartbeat.
    news: bool,
}

impl Client {
    fn beat(&mut self, stage: &mut Stage, answer_is_lost: bool) {
        let (epoch, instance) = (self.epoch, self.instance);
        let has: Vec<(Uuid, i32)> = self.has.iter().copied().collect();
        let told = stage.beat(&self.id.clone(), epoch, |request| {
            if epoch == 0 || self.news {
                joins(&self.topics)(request);
                if self.pattern {
                    request.subscribed_topic_regex = Some("[uv]".into());
                }
            }
            let mut by_topic: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
            has.iter().for_each(|(topic, partition)| by_topic.entry(*topic).or_default().push(*partition));
            request.topic_partitions = Some(Vec::new());
            for (topic, partitions) in by_topic {
                let mut one = Default::default();
                owns(topic, &partitions)(&mut one);
                let all = request.topic_partitions.get_or_insert_default();
                all.extend(one.topic_partitions.into_iter().flatten());
            }
            request.instance_id = instance.map(ByteString::from);
        });
        if answer_is_lost {
            // It can't know what it missed: with the next heartbeat it says, and so is told, everything.
            self.news = true;
            return;
        }
        match told {
            (Ok(epoch), assignment) => {
                (self.epoch, self.news) = (epoch, false);
                if let Some(assignment) = assignment {
                    let parts = assignment.into_iter();
                    self.has = parts.flat_map(|(t, ps)| ps.into_iter().map(move |p| (t, p))).collect();
                }
            }
            (Err(ErrorCode::FencedMemberEpoch | ErrorCode::UnknownMemberId), _) => {
                // It abandons everything and starts anew.
                (self.epoch, self.has) = (0, BTreeSet::new());
            }
            (Err(ErrorCode::UnreleasedInstanceId), _) => {}
            (Err(other), _) => panic!("{} is told {other:?}", self.id),
        }
    }
}

/// No two clients that the group knows at their epochs believe to have the same partition.
fn check_clients(stage: &Stage, clients: &[Client], seed: u64) {
    let Some(crate::group::Group::Consumer(group)) = stage.shard.groups.get("g") else { return };
    let mut owners: BTreeMap<(Uuid, i32), &ByteString> = BTreeMap::new();
    for client in
        clients.iter().filter(|client| group.member(&client.id).is_some_and(|m| m.epoch >= client.epoch))
    {
        for partition in &client.has {
            if let Some(other) = owners.insert(*partition, &client.id) {
                panic!("seed {seed}: {partition:?} is with {} and with {other}", client.id);
            }
        }
    }
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let mut stage = Stage::new();
    for topic in TOPICS {
        stage.cluster.add(topic, 1 + random.below(5) as i32);
    }
    let mut clients: Vec<Client> = Vec::new();
    let mut born = 0;
    for _ in 0..120 {
        step(&mut stage, &mut clients, &mut born, &mut random);
        if random.one_in(2) {
            stage.look_up();
        }
        check_clients(&stage, &clients, seed);
    }
    settle(&mut stage, &mut clients, seed);
}

fn step(stage: &mut Stage, clients: &mut Vec<Client>, born: &mut u32, random: &mut Random) {
    let index = if clients.is_empty() { 0 } else { random.below(clients.len() as u64) as usize };
    match random.below(12) {
        0 | 1 if clients.len() < 6 => {
            *born += 1;
            let instance = ["i", "j"]
                .into_iter()
                .find(|name| random.one_in(4) && clients.iter().all(|client| client.instance != Some(*name)));
            clients.push(Client {
                id: format!("m{born}").into(),
                instance,
                pattern: random.one_in(4),
                topics: TOPICS.into_iter().filter(|_| random.one_in(2)).collect(),
                epoch: 0,
                has: BTreeSet::new(),
                news: true,
            });
        }
        2 if !clients.is_empty() && random.one_in(2) => {
            let client = clients.swap_remove(index);
            // It crashes, or says that it goes.
            if client.epoch > 0 && random.one_in(2) {
                let epoch = if client.instance.is_some() && random.one_in(2) { -2 } else { -1 };
                let says = |request: &mut callboard_protocol::messages::ConsumerGroupHeartbeatRequest| {
                    request.instance_id = client.instance.map(ByteString::from);
                };
                let _ = stage.beat(&client.id, epoch, says);
            }
        }
        3 if !clients.is_empty() => {
            clients[index].topics = TOPICS.into_iter().filter(|_| random.one_in(2)).collect();
            clients[index].news = true;
        }
        4 if random.one_in(3) => stage.fail_over(),
        5 if random.one_in(3) => {
            stage.cluster.add(TOPICS[random.below(3) as usize], 1 + random.below(7) as i32);
        }
        6 => stage.advance(random.below(20_000) as i64),
        _ if !clients.is_empty() => {
            let is_lost = random.one_in(8);
            clients[index].beat(stage, is_lost);
        }
        _ => {}
    }
}

/// Left alone, everybody comes to rest, and every partition that somebody wants is with one of them.
fn settle(stage: &mut Stage, clients: &mut [Client], seed: u64) {
    for _ in 0..40 {
        for client in clients.iter_mut() {
            client.beat(stage, false);
            stage.look_up();
        }
        stage.advance(5_000);
        check_clients(stage, clients, seed);
    }
    if clients.is_empty() {
        return;
    }
    let group = stage.group("g");
    assert_eq!(group.len(), clients.len(), "seed {seed}: who is gone is out");
    assert_eq!(group.state(), GroupState::Stable, "seed {seed}");
    let mut all: BTreeSet<(Uuid, i32)> = BTreeSet::new();
    for client in clients.iter() {
        let member = group.member(&client.id).expect("it is in the group");
        let assigned: BTreeSet<(Uuid, i32)> = member.assigned.iter().map(|(t, p, _)| (t, p)).collect();
        assert_eq!(client.has, assigned, "seed {seed}: {} has what it was given", client.id);
        all.extend(&client.has);
    }
    let topics = group.existing_topics(&stage.cluster);
    let wanted: usize = topics.values().map(|topic| topic.partitions as usize).sum();
    assert_eq!(all.len(), wanted, "seed {seed}: every partition is with somebody");
}

#[test]
fn everybody_comes_to_rest_whatever_happens() {
    for seed in 0..60 {
        run(seed);
    }
}
