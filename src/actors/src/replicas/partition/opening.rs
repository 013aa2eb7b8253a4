//! One opening of a log at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Lets the generations of a partition's actor open its log one after the other.
///
/// A crash leaves an opening running in the blocking pool. Its successor waits for it: two at once would each take for a
/// torn end, and cut off, what the other has begun to write.
#[derive(Debug, Default)]
pub struct Opening {
    alone: Mutex<()>,
    newest: AtomicU64,
}

impl Opening {
    /// From now on only this generation may open the log.
    pub fn take_over(&self, generation: u64) {
        self.newest.store(generation, Ordering::SeqCst);
    }

    /// Opens the log for a generation, unless a later one has taken over. It blocks.
    pub fn open_as<T>(&self, generation: u64, open: impl FnOnce() -> T) -> Option<T> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        (self.newest.load(Ordering::SeqCst) == generation).then(open)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_successor_waits_for_an_opening_that_a_crash_left_running() {
        let opening = Opening::default();
        let (begun, first_runs) = mpsc::channel();
        let (go_on, gate) = mpsc::channel();
        let first_ended = AtomicBool::new(false);
        let (opening, first_ended) = (&opening, &first_ended);
        thread::scope(|scope| {
            opening.take_over(0);
            scope.spawn(move || {
                opening.open_as(0, || {
                    begun.send(()).expect("the test listens");
                    gate.recv().expect("the test goes on");
                    first_ended.store(true, Ordering::SeqCst);
                })
            });
            first_runs.recv().expect("the first begins");
            opening.take_over(1);
            let second = scope.spawn(move || opening.open_as(1, || first_ended.load(Ordering::SeqCst)));
            go_on.send(()).expect("the first waits");
            assert_eq!(second.join().expect("no panic"), Some(true));
        });
    }

    #[test]
    fn an_opening_that_comes_after_its_successor_does_nothing() {
        let opening = Opening::default();
        opening.take_over(0);
        opening.take_over(1);
        assert_eq!(opening.open_as(0, || ()), None);
        assert_eq!(opening.open_as(1, || ()), Some(()));
    }
}
