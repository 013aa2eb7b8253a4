//! Members of both protocols in one group, that come, go, crash and fail over: no partition is ever with two of them, and
//! left alone they come to rest.

use std::collections::{BTreeMap, BTreeSet};

use callboard_protocol::{ByteString, ErrorCode, Uuid};

use super::migration::partitions_in;
use super::stage::*;
use crate::group::consumer::GroupState;

const PARTITIONS: i32 = 7;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A client of the classic protocol with a cooperative assignor: it keeps what it has while it joins again.
#[derive(Default)]
struct Classic {
    id: ByteString,
    generation: i32,
    has: BTreeSet<i32>,
    is_to_join: bool,
}

impl Classic {
    fn turn(&mut self, stage: &mut Stage) {
        if !self.is_to_join {
            match stage.classic_beat(&self.id, self.generation) {
                ErrorCode::None => {}
                ErrorCode::RebalanceInProgress => self.is_to_join = true,
                _ => self.start_anew(),
            }
            return;
        }
        let owned: Vec<i32> = self.has.iter().copied().collect();
        let joined = stage.join(&self.id, None, &owned);
        match ErrorCode::from(joined.error_code) {
            ErrorCode::None => {}
            ErrorCode::MemberIdRequired => {
                self.id = joined.member_id;
                return;
            }
            _ => return self.start_anew(),
        }
        self.generation = joined.generation_id;
        let synced = stage.sync(&self.id, self.generation, &[]);
        match ErrorCode::from(synced.error_code) {
            ErrorCode::None => {
                let given: BTreeSet<i32> = partitions_in(&synced.assignment).into_iter().collect();
                // What it gives up it tells by joining once more.
                self.is_to_join = !self.has.is_subset(&given);
                self.has = given;
            }
            ErrorCode::RebalanceInProgress => {}
            _ => self.start_anew(),
        }
    }

    fn start_anew(&mut self) {
        *self = Self { is_to_join: true, ..Self::default() };
    }
}

struct Consumer {
    id: ByteString,
    epoch: i32,
    has: BTreeSet<i32>,
}

impl Consumer {
    fn turn(&mut self, stage: &mut Stage, topic: Uuid) {
        let (epoch, has) = (self.epoch, self.has.iter().copied().collect::<Vec<_>>());
        let told = stage.beat(&self.id.clone(), epoch, |request| match epoch {
            0 => joins(&["t"])(request),
            _ => owns(topic, &has)(request),
        });
        match told {
            (Ok(epoch), assignment) => {
                self.epoch = epoch;
                if let Some(assignment) = assignment {
                    self.has = assignment.into_iter().flat_map(|(_, partitions)| partitions).collect();
                }
            }
            (Err(_), _) => (self.epoch, self.has) = (0, BTreeSet::new()),
        }
    }
}

struct Company {
    stage: Stage,
    topic: Uuid,
    classic: Vec<Classic>,
    consumers: Vec<Consumer>,
}

impl Company {
    fn step(&mut self, random: &mut Random, born: &mut u32) {
        match random.below(10) {
            0 if self.classic.len() < 4 => {
                self.classic.push(Classic { is_to_join: true, ..Classic::default() })
            }
            1 if self.consumers.len() < 4 => {
                *born += 1;
                self.consumers.push(Consumer {
                    id: format!("c{born}").into(),
                    epoch: 0,
                    has: BTreeSet::new(),
                });
            }
            2 if self.classic.len() > 1 => {
                let gone = self.classic.pop().unwrap_or_default();
                if random.below(2) == 0 && !gone.id.is_empty() {
                    self.stage.leave(&gone.id);
                }
            }
            // The first one stays, so that the group stays what it is.
            3 if self.consumers.len() > 1 => {
                let gone = self.consumers.pop().map(|gone| gone.id).unwrap_or_default();
                if random.below(2) == 0 {
                    let _ = self.stage.beat(&gone, -1, nothing);
                }
            }
            4 if random.below(3) == 0 => self.stage.fail_over(),
            5 => self.stage.advance(random.below(4_000) as i64),
            6 | 7 if !self.classic.is_empty() => {
                let index = random.below(self.classic.len() as u64) as usize;
                self.classic[index].turn(&mut self.stage);
            }
            _ => {
                let index = random.below(self.consumers.len() as u64) as usize;
                self.consumers[index].turn(&mut self.stage, self.topic);
            }
        }
    }

    /// No two clients that the group knows at their epochs believe to have the same partition.
    fn check(&self, seed: u64) {
        let group = self.stage.group("g");
        let is_known =
            |id: &ByteString, epoch: i32| group.member(id).is_some_and(|member| member.epoch >= epoch);
        let classic = self.classic.iter().filter(|client| is_known(&client.id, client.generation));
        let consumers = self.consumers.iter().filter(|client| is_known(&client.id, client.epoch));
        let all = classic.map(|c| (&c.id, &c.has)).chain(consumers.map(|c| (&c.id, &c.has)));
        let mut owners: BTreeMap<i32, &ByteString> = BTreeMap::new();
        for (id, has) in all {
            for partition in has {
                if let Some(other) = owners.insert(*partition, id) {
                    panic!("seed {seed}: partition {partition} is with {id} and with {other}");
                }
            }
        }
    }

    fn settle(&mut self, seed: u64) {
        for _ in 0..40 {
            self.classic.iter_mut().for_each(|client| client.turn(&mut self.stage));
            self.consumers.iter_mut().for_each(|client| client.turn(&mut self.stage, self.topic));
            self.stage.advance(3_000);
            self.check(seed);
        }
        let group = self.stage.group("g");
        assert_eq!(group.state(), GroupState::Stable, "seed {seed}");
        assert_eq!(group.len(), self.classic.len() + self.consumers.len(), "seed {seed}: who is gone is out");
        let classic = self.classic.iter().flat_map(|client| &client.has);
        let all: BTreeSet<i32> =
            classic.chain(self.consumers.iter().flat_map(|client| &client.has)).copied().collect();
        assert_eq!(all, (0..PARTITIONS).collect(), "seed {seed}: every partition is with somebody");
    }
}

#[test]
fn members_of_both_protocols_come_to_rest() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut stage = Stage::new();
        let topic = stage.cluster.add("t", PARTITIONS);
        let first = Consumer { id: "c0".into(), epoch: 0, has: BTreeSet::new() };
        let mut company = Company { stage, topic, classic: Vec::new(), consumers: vec![first] };
        company.consumers[0].turn(&mut company.stage, topic);
        let mut born = 0;
        for _ in 0..150 {
            company.step(&mut random, &mut born);
            // The first consumer is never silent for long: without it the group would be of the other kind.
            company.consumers[0].turn(&mut company.stage, topic);
            company.check(seed);
        }
        company.settle(seed);
    }
}
