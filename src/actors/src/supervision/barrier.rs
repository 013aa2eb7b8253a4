//! The barrier: every entry into an actor runs inside it, so a panic ends the entry and not the thread.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// A panic that the barrier caught.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panic {
    /// The panic's message.
    pub message: String,
    /// `file:line:column`, when the hook is installed.
    pub location: Option<String>,
}

/// Makes panics inside the barrier silent, remembering where they were: the crash report tells of them.
/// Other panics go to the hook that was there before. Called once for the process; later calls do nothing.
pub fn install_panic_hook() {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if DEPTH.with(Cell::get) > 0 {
                LOCATION.with(|place| *place.borrow_mut() = info.location().map(ToString::to_string));
            } else {
                before(info);
            }
        }));
    });
}

/// Runs one entry. A panic in it comes back as a value.
pub fn run<R>(entry: impl FnOnce() -> R) -> Result<R, Panic> {
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let outcome = panic::catch_unwind(AssertUnwindSafe(entry));
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    outcome.map_err(|payload| {
        let panic = Panic {
            message: message_of(payload.as_ref()),
            location: LOCATION.with(|place| place.borrow_mut().take()),
        };
        // The payload is somebody's value: its drop may panic too.
        let _ = panic::catch_unwind(AssertUnwindSafe(move || drop(payload)));
        panic
    })
}

/// The panic of the fault hook. It unwinds like any other.
pub fn crash_on_purpose() -> ! {
    panic::resume_unwind(Box::new("crashed by the fault hook"))
}

/// Drops what belongs to a broken actor: its destructors may panic as well.
pub fn drop_quietly<T>(broken: T) {
    if let Err(panic) = run(move || drop(broken)) {
        tracing::warn!(message = panic.message, location = panic.location, "a destructor panicked");
    }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_value_with_its_place() {
        install_panic_hook();
        assert_eq!(run(|| 7), Ok(7));
        let caught = run(|| panic!("number {}", 3)).unwrap_err();
        assert_eq!(caught.message, "number 3");
        assert!(caught.location.unwrap().contains("barrier.rs"));
    }

    #[test]
    fn a_panicking_destructor_stays_inside() {
        struct Bad;
        impl Drop for Bad {
            fn drop(&mut self) {
                panic!("in drop");
            }
        }
        install_panic_hook();
        drop_quietly(Bad);
    }
}
