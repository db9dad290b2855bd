use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

use parking_lot::Mutex;

use super::cl::Sizes;
use super::graphs::Graphs;

/// What a copy was for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Category {
    /// A copy of the data set itself, which a direct route guarantees not to make.
    #[default]
    DataSet,
    /// Bringing input to the device.
    Input,
    /// Bringing results back.
    Result,
    /// Scalars, `info` words, probe counters.
    Control,
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DataSet => "data set",
            Self::Input => "input",
            Self::Result => "result",
            Self::Control => "control",
        })
    }
}

type Caller = &'static Location<'static>;

thread_local! {
    static SCOPES: RefCell<Vec<(Category, Caller)>> = const { RefCell::new(Vec::new()) };
}

/// Holds a [`Category`] for the calling thread. It does not leave this crate, whose own functions drop it: a leaked
/// scope would apply its category to every later copy of the thread.
#[derive(Debug)]
pub(crate) struct Scope {
    depth: usize,
    // A scope belongs to the thread that opened it.
    not_send: PhantomData<*const ()>,
}

impl Scope {
    #[track_caller]
    pub(crate) fn enter(category: Category) -> Self {
        let caller = Location::caller();
        let depth = SCOPES.with_borrow_mut(|scopes| {
            scopes.push((category, caller));
            scopes.len()
        });
        Self {
            depth,
            not_send: PhantomData,
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // Truncating rather than popping keeps the stack right when an outer scope goes first.
        // At thread exit the list may be gone already.
        let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().truncate(self.depth - 1));
    }
}

/// Bytes copied by category, and every kind of call that copied them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of [`Category::DataSet`].
    pub data_set: u64,
    /// Bytes of [`Category::Input`].
    pub input: u64,
    /// Bytes of [`Category::Result`].
    pub result: u64,
    /// Bytes of [`Category::Control`].
    pub control: u64,
    /// One entry per function, category and caller.
    pub calls: Vec<CallCount>,
}

/// How often one function copied for one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCount {
    /// The C function.
    pub function: &'static str,
    /// What it was for.
    pub category: Category,
    /// `file:line` of the scope it ran in, `None` without one.
    pub caller: Option<String>,
    /// Successful calls.
    pub calls: u64,
    /// Bytes they moved.
    pub bytes: u64,
}

impl Counts {
    /// The counts since `earlier`, a previous snapshot of the same meter.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = Self::default();
        for now in &self.calls {
            let before = earlier.calls.iter().find(|call| call.is_same_kind(now));
            let (calls, bytes) = before.map_or((0, 0), |call| (call.calls, call.bytes));
            if now.calls > calls {
                difference.add(CallCount {
                    calls: now.calls - calls,
                    bytes: now.bytes - bytes,
                    ..now.clone()
                });
            }
        }
        difference
    }

    fn add(&mut self, call: CallCount) {
        let total = match call.category {
            Category::DataSet => &mut self.data_set,
            Category::Input => &mut self.input,
            Category::Result => &mut self.result,
            Category::Control => &mut self.control,
        };
        *total = total.saturating_add(call.bytes);
        self.calls.push(call);
    }
}

impl CallCount {
    fn is_same_kind(&self, other: &Self) -> bool {
        (self.function, self.category, &self.caller) == (other.function, other.category, &other.caller)
    }
}

/// What is counted apart. Callers are compared by place, not by address: one line may have several
/// `Location`s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    function: &'static str,
    category: Category,
    place: Option<(&'static str, u32)>,
}

#[derive(Default)]
struct Tally {
    calls: u64,
    bytes: u64,
}

/// A copy that was made, or that a graph makes when it runs.
#[derive(Clone)]
pub(super) struct Copied {
    kind: Kind,
    bytes: usize,
}

impl Copied {
    /// In the category of the current scope. What a layer below marks as control data is that, whatever the scope.
    pub(super) fn now(function: &'static str, bytes: usize) -> Self {
        let innermost = SCOPES.try_with(|scopes| scopes.borrow().last().copied()).ok().flatten();
        let (category, caller) =
            innermost.map_or((Category::DataSet, None), |(category, caller)| (category, Some(caller)));
        let category = if hip::is_control() { Category::Control } else { category };
        let place = caller.map(|caller| (caller.file(), caller.line()));
        let kind = Kind {
            function,
            category,
            place,
        };
        Self { kind, bytes }
    }
}

/// The copies through one bridge's tables, and the state needed to count them.
#[derive(Default)]
pub(super) struct Ledger {
    tallies: Mutex<BTreeMap<Kind, Tally>>,
    pub(super) graphs: Graphs,
    pub(super) sizes: Sizes,
}

impl Ledger {
    pub(super) fn add(&self, copied: &Copied) {
        let mut tallies = self.tallies.lock();
        let tally = tallies.entry(copied.kind).or_default();
        tally.calls += 1;
        tally.bytes = tally.bytes.saturating_add(copied.bytes as u64);
    }

    pub(super) fn clear(&self) {
        self.tallies.lock().clear();
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (kind, tally) in &*self.tallies.lock() {
            counts.add(CallCount {
                function: kind.function,
                category: kind.category,
                caller: kind.place.map(|(file, line)| format!("{file}:{line}")),
                calls: tally.calls,
                bytes: tally.bytes,
            });
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ledger {
        fn record(&self, function: &'static str, bytes: usize) {
            self.add(&Copied::now(function, bytes));
        }
    }

    #[test]
    fn the_innermost_scope_decides_and_none_means_data_set() {
        let ledger = Ledger::default();
        ledger.record("hipMemcpy", 1);
        {
            let _input = Scope::enter(Category::Input);
            ledger.record("hipMemcpy", 10);
            {
                let _control = Scope::enter(Category::Control);
                ledger.record("hipMemcpy", 100);
            }
            ledger.record("hipMemcpy", 1000);
        }
        ledger.record("hipMemcpy", 10_000);
        let counts = ledger.counts();
        assert_eq!((counts.data_set, counts.input, counts.control), (10_001, 1010, 100));
    }

    #[test]
    fn control_data_of_a_layer_below_is_that_in_any_scope() {
        let ledger = Ledger::default();
        hip::control(|| ledger.record("hipMemcpy", 1));
        let _result = Scope::enter(Category::Result);
        hip::control(|| ledger.record("hipMemcpy", 10));
        ledger.record("hipMemcpy", 100);
        let counts = ledger.counts();
        assert_eq!((counts.data_set, counts.result, counts.control), (0, 100, 11));
    }

    #[test]
    fn an_outer_scope_dropped_first_leaves_no_category_behind() {
        let outer = Scope::enter(Category::Input);
        let inner = Scope::enter(Category::Result);
        drop(outer);
        drop(inner);
        let ledger = Ledger::default();
        ledger.record("clEnqueueCopyBuffer", 7);
        assert_eq!(ledger.counts().data_set, 7);
    }

    #[test]
    fn a_difference_holds_only_what_came_after() {
        let ledger = Ledger::default();
        ledger.record("hipMemcpy", 5);
        let before = ledger.counts();
        assert_eq!(ledger.counts().since(&before), Counts::default());
        ledger.record("hipMemcpy", 3);
        let _scope = Scope::enter(Category::Result);
        ledger.record("hipMemcpy", 4);
        let difference = ledger.counts().since(&before);
        assert_eq!((difference.data_set, difference.result), (3, 4));
        assert_eq!(difference.calls.len(), 2);
    }

    #[test]
    fn the_caller_is_the_place_that_opened_the_scope() {
        let ledger = Ledger::default();
        let line = line!() + 1;
        let _scope = Scope::enter(Category::Control);
        ledger.record("hipMemcpy", 1);
        let caller = ledger.counts().calls[0].caller.clone().expect("inside a scope");
        assert!(caller.ends_with(&format!("ledger.rs:{line}")), "{caller}");
    }
}
