//! The fault hook: crash actors on purpose, by path or at random with a seed. For chaos tests.

use std::time::Duration;

use super::cell::Command;
use super::random::Random;
use super::tree::{Kind, State, Tree};

/// Which actors a random crash may hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victims {
    /// Actors with a mailbox.
    Actors,
    /// Those, and tasks (connections).
    ActorsAndTasks,
}

/// Makes the actor at `path` panic in its next entry. False if there is none that runs.
pub fn crash(tree: &Tree, path: &str) -> bool {
    let nodes = tree.nodes();
    let victim = nodes.iter().find(|node| node.path == path && node.state() == State::Running);
    if let Some(victim) = victim {
        victim.command(Command::Crash);
    }
    victim.is_some()
}

/// Makes a random running actor panic, and says which.
pub fn crash_random(tree: &Tree, random: &mut Random, victims: Victims) -> Option<String> {
    let nodes = tree.nodes();
    let allowed = |kind| match victims {
        Victims::Actors => kind == Kind::Actor,
        Victims::ActorsAndTasks => kind != Kind::Supervisor,
    };
    let candidates: Vec<_> =
        nodes.iter().filter(|node| node.state() == State::Running && allowed(node.kind)).collect();
    let count = u64::try_from(candidates.len()).unwrap_or(0);
    let index = usize::try_from(random.below(count)).unwrap_or(0);
    let victim = candidates.get(index)?;
    victim.command(Command::Crash);
    Some(victim.path.clone())
}

/// Crashes a random actor each `interval`, for as long as it is polled. Run it as a task below the root.
pub async fn crash_every(tree: Tree, interval: Duration, seed: u64, victims: Victims) {
    let mut random = Random::new(seed);
    loop {
        tokio::time::sleep(interval).await;
        match crash_random(&tree, &mut random, victims) {
            Some(path) => tracing::warn!(actor = path, "crashed on purpose"),
            None => tracing::warn!("nobody to crash"),
        }
    }
}
