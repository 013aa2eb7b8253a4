//! How senders wake a cell: rung once, however many send, until the cell rests again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use futures_util::task::AtomicWaker;

#[derive(Default)]
pub(super) struct Bell {
    /// Rung, and the cell has not rested since.
    rung: AtomicBool,
    /// The cell's waker. A task's waker stays the same, so most bells need no other.
    waker: OnceLock<Waker>,
    /// Set if it did change; then `other` is used as well.
    changed: AtomicBool,
    other: AtomicWaker,
}

impl Bell {
    pub fn ring(&self) {
        if self.rung.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
        if self.changed.load(Ordering::SeqCst) {
            self.other.wake();
        }
    }

    /// The cell runs, and is woken by `waker` from now on.
    pub fn watch(&self, waker: &Waker) {
        let known = self.waker.get_or_init(|| waker.clone());
        if !known.will_wake(waker) || self.changed.load(Ordering::Relaxed) {
            self.other.register(waker);
            self.changed.store(true, Ordering::SeqCst);
        }
    }

    /// The cell is about to rest. Whatever was sent before is visible after this.
    pub fn rearm(&self) {
        self.rung.swap(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn woken(count: &Count) -> usize {
        count.0.swap(0, Ordering::SeqCst)
    }

    #[test]
    fn wakes_once_until_rearmed() {
        let (bell, count) = (Bell::default(), Arc::new(Count::default()));
        bell.ring();
        bell.watch(&Waker::from(Arc::clone(&count)));
        bell.rearm();
        bell.ring();
        bell.ring();
        assert_eq!(woken(&count), 1);
        bell.rearm();
        bell.ring();
        assert_eq!(woken(&count), 1);
    }

    #[test]
    fn follows_a_task_that_moves() {
        let (bell, first, second) = (Bell::default(), Arc::new(Count::default()), Arc::new(Count::default()));
        bell.watch(&Waker::from(Arc::clone(&first)));
        bell.watch(&Waker::from(Arc::clone(&second)));
        bell.rearm();
        bell.ring();
        assert_eq!(woken(&second), 1);
        bell.watch(&Waker::from(Arc::clone(&first)));
        bell.rearm();
        bell.ring();
        assert!(woken(&first) > 0);
    }
}
