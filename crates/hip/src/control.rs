//! Copies that move no data of the program.

use std::cell::Cell;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work`, in which this thread's copies move *control data*: the addresses that a library needs, the words in
/// which it reports. Code that counts copies at the function table tells them apart by [`is_control`].
pub fn control<R>(work: impl FnOnce() -> R) -> R {
    struct Leave;

    impl Drop for Leave {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }

    DEPTH.set(DEPTH.get() + 1);
    let _leave = Leave;
    work()
}

/// Whether this thread is in [`control`].
#[must_use]
pub fn is_control() -> bool {
    // At thread exit there may be no counter any more.
    DEPTH.try_with(Cell::get).is_ok_and(|depth| depth > 0)
}

#[cfg(test)]
mod tests {
    use super::{control, is_control};

    #[test]
    fn control_ends_with_its_work_even_in_a_panic() {
        assert!(!is_control());
        assert!(control(|| control(is_control) && is_control()));
        let _ = std::panic::catch_unwind(|| control(|| panic!("on purpose")));
        assert!(!is_control());
    }
}
