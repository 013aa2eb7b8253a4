//! The watchdog: one plain thread that sees whether every shard's loop still turns, and names what holds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::tree::Tree;

/// How often the watchdog looks, and how long a shard may be silent.
#[derive(Debug, Clone, Copy)]
pub struct WatchdogOptions {
    /// Between two looks.
    pub interval: Duration,
    /// A shard that has not answered for this long is stuck.
    pub stuck_after: Duration,
}

impl Default for WatchdogOptions {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), stuck_after: Duration::from_secs(5) }
    }
}

/// A shard that does not turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The shard.
    pub shard: usize,
    /// The actor that runs on it, when it is one of ours.
    pub actor: Option<String>,
}

/// The running watchdog. Dropped, it ends.
#[derive(Debug)]
pub struct Watchdog {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread. `report` is called, besides the log, once for each time a shard gets stuck.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn start(
        tree: &Tree,
        options: WatchdogOptions,
        report: impl FnMut(&Stuck) + Send + 'static,
    ) -> std::io::Result<Self> {
        let ending = Arc::new(AtomicBool::new(false));
        let (tree, told) = (tree.clone(), Arc::clone(&ending));
        let watch = move || watch(&tree, options, &told, report);
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(watch)?;
        Ok(Self { ending, thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

struct Beat {
    number: u64,
    sent: Instant,
    stuck: bool,
}

fn watch(tree: &Tree, options: WatchdogOptions, ending: &AtomicBool, mut report: impl FnMut(&Stuck)) {
    let shards = tree.shards();
    let begin = |shard| {
        shards.send_beat(shard, 1);
        Beat { number: 1, sent: Instant::now(), stuck: false }
    };
    let mut beats: Vec<Beat> = (0..shards.count()).map(begin).collect();
    while !ending.load(Ordering::Acquire) {
        thread::park_timeout(options.interval);
        for (shard, beat) in beats.iter_mut().enumerate() {
            if shards.last_beat(shard) == beat.number {
                if beat.stuck {
                    let silent_ms = beat.sent.elapsed().as_millis();
                    tracing::warn!(shard, silent_ms, "a stuck shard turns again");
                    shards.set_stuck(shard, false);
                }
                *beat = Beat { number: beat.number + 1, sent: Instant::now(), stuck: false };
                shards.send_beat(shard, beat.number);
            } else if !beat.stuck && beat.sent.elapsed() >= options.stuck_after {
                beat.stuck = true;
                shards.set_stuck(shard, true);
                let stuck = Stuck { shard, actor: tree.path_of(shards.running(shard)) };
                tracing::error!(shard, actor = stuck.actor, "a shard is stuck");
                report(&stuck);
            }
        }
    }
}
