//! The same raw requests to Kafka 4.4.0 and to Callboard, and their whole answers compared.
//!
//! `tests/differential/run` starts both and runs this. `KAFKA` and `CALLBOARD` are the brokers' addresses; an
//! argument is the start of the names of the scenarios to play.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod broker;
mod compare;
mod exceptions;
mod normal;
mod records;
mod scenarios;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use broker::Broker;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::DescribeLogDirsRequest;
use compare::{Difference, compare, report};
use exceptions::EXCEPTIONS;
use scenarios::{SCENARIOS, Scenario};
use serde_json::json;
use stage::{Stage, Step, versions};

/// The note of a play that did not come to its end.
const BROKE_OFF: &str = "broke off";
/// How often a scenario is played at most, when a broker is not at its best.
const MAX_PLAYS: usize = 3;
/// Scenarios that are played at a time.
const PLAYERS: usize = 6;

fn main() -> ExitCode {
    let (Ok(kafka), Ok(callboard)) = (std::env::var("KAFKA"), std::env::var("CALLBOARD")) else {
        eprintln!("KAFKA and CALLBOARD name the brokers to compare; tests/differential/run starts both");
        return ExitCode::from(2);
    };
    let brokers = [Broker::new("Kafka", &kafka), Broker::new("Callboard", &callboard)].map(with_log_dir);
    let only = std::env::args().nth(1).unwrap_or_default();
    let run = format!("{:x}", std::process::id());
    let chosen = |alone| {
        let chosen = SCENARIOS.iter().filter(move |scenario| scenario.alone == alone);
        let chosen = chosen.filter(|scenario| scenario.name.starts_with(&only));
        chosen.flat_map(|scenario| versions(scenario.api).map(move |version| (scenario, version))).collect()
    };
    let mut results = play_all(&brokers, chosen(true), &run, 1);
    results.extend(play_all(&brokers, chosen(false), &run, PLAYERS));
    judge(results, &run, only.is_empty())
}

/// The broker, with the directory that it tells.
fn with_log_dir(broker: Broker) -> Broker {
    let mut stage = Stage::new(&broker, 0, String::new());
    let answer = stage.ask(&DescribeLogDirsRequest { topics: Some(Vec::new()), ..Default::default() });
    let log_dir = answer.results.first().map(|result| result.log_dir.to_string());
    Broker { log_dir, ..broker }
}

type Job = (&'static Scenario, i16);
type Found = Vec<(Job, (Vec<Difference>, BTreeSet<usize>))>;

fn play_all(brokers: &[Broker; 2], jobs: Vec<Job>, run: &str, players: usize) -> Found {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..players {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let differences = play_both(brokers, *job, run);
                    results.lock().expect("no player panics").push((*job, differences));
                }
            });
        }
    });
    results.into_inner().expect("no player panics")
}

fn play_both(
    brokers: &[Broker; 2],
    (scenario, version): Job,
    run: &str,
) -> (Vec<Difference>, BTreeSet<usize>) {
    let mut plays = 0;
    let (kafka, callboard) = loop {
        plays += 1;
        let prefix = format!("{}{}", prefix(run, scenario, version), "r".repeat(plays - 1));
        let play = |broker| {
            let prefix = prefix.clone();
            move || play(broker, scenario, version, prefix)
        };
        let (kafka, callboard) = std::thread::scope(|scope| {
            let [kafka, callboard] = brokers.each_ref().map(|broker| scope.spawn(play(broker)));
            (kafka.join().expect("a play is caught"), callboard.join().expect("a play is caught"))
        });
        if plays == MAX_PLAYS || !kafka.iter().chain(&callboard).any(was_disturbed) {
            break (kafka, callboard);
        }
    };
    compare(scenario.name, &kafka, &callboard)
}

/// On a machine without time to spare a broker may stay silent, or its controller give up its place for a moment.
fn was_disturbed(step: &Step) -> bool {
    let seen = step.seen.to_string();
    let no_controller = format!("\"errorCode\":{}", ErrorCode::NotController as i16);
    step.note == BROKE_OFF || seen == "\"Silent\"" || seen.contains(&no_controller)
}

fn play(broker: &Broker, scenario: &Scenario, version: i16, prefix: String) -> Vec<Step> {
    let mut stage = Stage::new(broker, version, prefix);
    let played = catch_unwind(AssertUnwindSafe(|| (scenario.play)(&mut stage)));
    if played.is_err() {
        // A play that breaks off is a difference even if both do.
        stage.note(BROKE_OFF, json!(broker.name));
    }
    stage.into_steps()
}

/// How the names of a play's topics start: the same on both brokers, other than those of any other play.
fn prefix(run: &str, scenario: &Scenario, version: i16) -> String {
    format!("d{run}-{}-{version}", scenario.name)
}

fn judge(results: Found, run: &str, all: bool) -> ExitCode {
    let (mut passed, mut failed, mut excepted) = (0, 0, BTreeSet::new());
    let mut by_scenario: BTreeMap<&str, (&Scenario, BTreeMap<i16, Vec<Difference>>)> = BTreeMap::new();
    for ((scenario, version), (differences, covered)) in results {
        excepted.extend(covered);
        if differences.is_empty() {
            passed += 1;
        } else {
            failed += 1;
        }
        let entry = by_scenario.entry(scenario.name).or_insert_with(|| (scenario, BTreeMap::new()));
        entry.1.insert(version, differences);
    }
    for (name, (scenario, by_version)) in &by_scenario {
        report(name, by_version, |version| prefix(run, scenario, version));
    }
    for (at, exception) in EXCEPTIONS.iter().enumerate() {
        if excepted.contains(&at) {
            println!("excepted: {exception}");
        } else if all {
            println!("FAILED: no difference any more: {exception}");
            failed += 1;
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
