//! The group shard under a seeded simulation: members of classic groups join, commit, leave, crash and come back while
//! appends are late or refused and the coordinator moves. After each step the invariants hold, and the same seed gives
//! the same run.
//!
//! `CALLBOARD_SEED=17 cargo test -p callboard-coordinator --test simulation` runs one seed alone.

// What must not be is a failure of the test.
#![allow(clippy::panic)]

mod member;
mod world;

use world::World;

/// Steps of trouble in one run.
const STEPS: usize = 300;
/// Seeds of the usual run.
const SEEDS: u64 = 40;

/// One run: trouble, then quiet. Gives what happened, to compare runs.
fn run(seed: u64) -> Vec<String> {
    run_with(seed, STEPS, None)
}

/// A run of so many steps, in which the coordinator crashes before one of them.
fn run_with(seed: u64, steps: usize, crash_at: Option<usize>) -> Vec<String> {
    World::trace(play(seed, steps, crash_at))
}

fn play(seed: u64, steps: usize, crash_at: Option<usize>) -> World {
    let mut world = World::new(seed);
    for step in 0..steps {
        if crash_at == Some(step) {
            world.fail_over();
        }
        world.trouble();
        world.check(&format!("seed {seed}, step {step}"));
    }
    world.calm_down();
    world.check_settled(&format!("seed {seed}, at rest"));
    world
}

#[test]
fn members_come_to_rest_and_no_commit_is_lost() {
    match std::env::var("CALLBOARD_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => drop(run(seed)),
        None => {
            let commits: u64 = (0..SEEDS).map(|seed| play(seed, STEPS, None).commits()).sum();
            assert!(commits > 20 * SEEDS, "only {commits} commits: nothing was tried");
        }
    }
}

#[test]
fn a_crash_at_any_step_of_a_run_is_survived() {
    for step in 0..80 {
        run_with(2000, 80, Some(step));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 1000..1003 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1000), run(1001));
}
