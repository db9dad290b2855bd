use parking_lot::Mutex;

use super::*;

/// A queue or stream that is only a number and does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Queue(usize),
    Stream(usize),
}
use Number::{Queue, Stream};

/// The stream whose work has failed.
const FAILED: usize = 13;
/// Streams from here on have no holder; the first one's work does not end.
const GONE: usize = 2000;
const AT_WORK: usize = GONE;

/// More users than are kept, and fewer under Miri, which is slow.
const MANY: usize = if cfg!(miri) { 150 } else { 1000 };

impl Worker for Number {
    type Mark = ();

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    fn shares_api(&self, other: &Self) -> bool {
        matches!(self, Queue(_)) == matches!(other, Queue(_))
    }

    fn orders_any_memory(&self) -> bool {
        matches!(self, Stream(_))
    }

    fn may_read_more(&self, held: bool) -> bool {
        match self {
            Self::Queue(_) => held,
            Self::Stream(number) => *number < GONE,
        }
    }

    fn has_ended(&self, mark: &mut Option<()>) -> Result<bool> {
        match self {
            Self::Stream(FAILED) | Self::Queue(FAILED) => Err(Error::Empty),
            Self::Stream(AT_WORK) => Ok(false),
            Self::Stream(GONE..) => Ok(true),
            _ => Ok(mark.replace(()).is_some()),
        }
    }
}

/// Records which users are ordered and which are waited for, and does nothing else.
#[derive(Default)]
struct Noting {
    waits: bool,
    /// Nothing is put after this one.
    refuses: Option<Number>,
    noted: Mutex<Vec<(Number, Option<Number>)>>,
    outcome: Option<Arc<Outcome>>,
}

impl Noting {
    fn waiting() -> Self {
        Self {
            waits: true,
            ..Self::default()
        }
    }

    fn take(&self) -> Vec<(Number, Option<Number>)> {
        std::mem::take(&mut *self.noted.lock())
    }
}

impl Order<Number> for Noting {
    fn put(&self, before: &Number, after: &Number) -> Result<Ordered> {
        if self.refuses == Some(*before) {
            return Err(Error::Empty);
        }
        self.noted.lock().push((*before, Some(*after)));
        Ok(match self.waits {
            true => Ordered::Waited,
            false => Ordered::Queued(self.outcome.clone()),
        })
    }

    fn wait(&self, before: &Number, after: Option<&Number>) -> Result<()> {
        self.noted.lock().push((*before, after.copied()));
        Ok(())
    }
}

/// The users that were waited for before this one was admitted. Its guard is leaked.
fn admit(
    uses: &mut AccessLedger<Number>,
    noting: &Noting,
    user: Number,
    access: Access,
    range: Range<usize>,
) -> Vec<Number> {
    let (waited, hold) = grant(uses, noting, user, access, range);
    std::mem::forget(hold);
    waited
}

/// As [`admit`], with what the guard keeps.
fn grant(
    uses: &mut AccessLedger<Number>,
    noting: &Noting,
    user: Number,
    access: Access,
    range: Range<usize>,
) -> (Vec<Number>, Hold) {
    let claim = Claim {
        access,
        range: &range,
        is_handed_whole: false,
    };
    let hold = uses.admit(noting, &user, claim).expect("admitted");
    let waited = noting.take().into_iter().map(|(before, _)| before);
    (waited.collect(), hold)
}

/// A reader whose guard lives until the result is dropped.
fn read(uses: &mut AccessLedger<Number>, user: Number, range: Range<usize>) -> Hold {
    let (_, hold) = grant(uses, &Noting::default(), user, Access::Read, range);
    hold
}

/// Checks which readers have ended; the first check of a reader marks its work.
fn sweep(uses: &mut AccessLedger<Number>) {
    let usual = std::mem::replace(&mut uses.sweep, Sweep::every(0));
    uses.sweep_readers().expect("no reader fails");
    uses.sweep = usual;
}

/// The users that a writer of these bytes waits for.
fn before_a_writer(uses: &mut AccessLedger<Number>, range: Range<usize>) -> Vec<Number> {
    admit(uses, &Noting::default(), Stream(77), Access::Write, range)
}

#[test]
fn a_reader_that_wrote_before_is_kept_when_another_reader_waits_for_its_write() {
    for noting in [Noting::waiting(), Noting::default()] {
        let mut uses = AccessLedger::default();
        admit(&mut uses, &noting, Stream(1), Access::Write, 0..8);
        // Its guard stays alive.
        admit(&mut uses, &noting, Stream(1), Access::Read, 0..8);
        let waited = admit(&mut uses, &noting, Queue(1), Access::Read, 0..8);
        assert_eq!(waited, [Stream(1)]);
        let mut waited = admit(&mut uses, &noting, Queue(2), Access::Write, 0..8);
        waited.sort_by_key(|user| matches!(user, Queue(_)));
        assert_eq!(waited, [Stream(1), Queue(1)]);
        uses.drain(&noting).expect("drained");
        let waited = noting.take();
        assert!(waited.contains(&(Queue(2), None)), "{waited:?}");
    }
}

#[test]
fn a_writer_without_readers_of_its_own_is_waited_for_once() {
    let (noting, mut uses) = (Noting::waiting(), AccessLedger::default());
    admit(&mut uses, &noting, Stream(1), Access::Write, 0..8);
    let waited = admit(&mut uses, &noting, Queue(1), Access::Read, 0..8);
    assert_eq!(waited, [Stream(1)]);
    assert_eq!(admit(&mut uses, &noting, Queue(2), Access::Read, 0..8), []);
    let waited = admit(&mut uses, &noting, Queue(1), Access::Write, 0..8);
    assert_eq!(waited, [Queue(2)]);
}

#[test]
fn readers_are_kept_when_all_are_waited_for_after_a_failure() {
    let outcome = Arc::<Outcome>::default();
    let noting = Noting {
        outcome: Some(Arc::clone(&outcome)),
        ..Noting::default()
    };
    let mut uses = AccessLedger::default();
    admit(&mut uses, &noting, Queue(1), Access::Write, 0..8);
    // Its guard stays alive.
    admit(&mut uses, &noting, Stream(1), Access::Read, 0..8);
    outcome.told(Err(Error::Empty));
    let claim = |access| Claim {
        access,
        range: &(0..8),
        is_handed_whole: false,
    };
    let read = claim(Access::Read);
    uses.admit(&noting, &Stream(2), read).expect_err("the hand-off failed");
    let noting = Noting::default();
    let waited = admit(&mut uses, &noting, Stream(2), Access::Read, 0..8);
    assert_eq!(waited, [Queue(1), Stream(1)]);
    let waited = admit(&mut uses, &noting, Queue(1), Access::Write, 0..8);
    assert_eq!(waited, [Stream(1), Stream(2)]);
}

#[test]
fn a_user_that_was_put_after_another_is_waited_for_though_it_was_refused_then() {
    let mut uses = AccessLedger::default();
    let noting = Noting {
        refuses: Some(Stream(1)),
        ..Noting::default()
    };
    admit(&mut uses, &noting, Queue(1), Access::Write, 0..4);
    admit(&mut uses, &noting, Stream(1), Access::Write, 4..8);
    for (stream, range) in [(2, 0..8), (3, 4..8)] {
        let claim = Claim {
            access: Access::Read,
            range: &range,
            is_handed_whole: false,
        };
        uses.admit(&noting, &Stream(stream), claim)
            .expect_err("nothing is put after a user of its bytes");
    }
    assert_eq!(noting.take(), [(Queue(1), Some(Stream(2)))]);
    uses.drain(&noting).expect("drained");
    let waited = noting.take();
    assert!(waited.contains(&(Stream(2), None)), "it may still wait");
    assert!(!waited.contains(&(Stream(3), None)), "it waits for nothing");
}

#[test]
fn a_reader_of_one_part_does_not_become_a_writer_of_it_when_it_writes_another() {
    let (noting, mut uses) = (Noting::waiting(), AccessLedger::default());
    admit(&mut uses, &noting, Stream(1), Access::Read, 0..8);
    // A guard of 4..8 stays alive, from a part that was split off.
    admit(&mut uses, &noting, Stream(1), Access::Read, 4..8);
    admit(&mut uses, &noting, Stream(1), Access::Write, 0..4);
    assert_eq!(admit(&mut uses, &noting, Queue(1), Access::Read, 4..8), []);
    let waited = admit(&mut uses, &noting, Queue(1), Access::Write, 4..8);
    assert_eq!(waited, [Stream(1)]);
}

#[test]
fn following_a_write_of_some_bytes_does_not_cover_merged_stretches() {
    let (noting, mut uses) = (Noting::default(), AccessLedger::default());
    let (writer, reader, other) = (Queue(1), Stream(1), Queue(2));
    admit(&mut uses, &noting, writer, Access::Write, 0..4);
    admit(&mut uses, &noting, writer, Access::Write, 8..12);
    let waited = admit(&mut uses, &noting, reader, Access::Read, 0..4);
    assert_eq!(waited, [writer]);
    let waited = admit(&mut uses, &noting, reader, Access::Read, 0..4);
    assert_eq!(waited, [], "it follows");
    // Too many to be kept apart, on bytes that are not written.
    for place in 0..=STRETCHES {
        let start = 100 + 2 * place;
        let waited = admit(&mut uses, &noting, other, Access::Read, start..start + 1);
        assert_eq!(waited, []);
    }
    let waited = admit(&mut uses, &noting, reader, Access::Read, 8..12);
    assert_eq!(waited, [writer]);
}

#[test]
fn ended_users_without_later_users_are_dropped() {
    let (noting, mut uses) = (Noting::default(), AccessLedger::default());
    for stream in 100..100 + MANY {
        admit(&mut uses, &noting, Stream(stream), Access::Write, 0..8);
    }
    let kept = uses.current.len() + uses.behind.len();
    assert!(kept <= 32, "{kept} of {MANY} are kept");
}

#[test]
fn readers_without_a_holder_are_dropped_when_they_have_ended() {
    let (noting, mut uses) = (Noting::default(), AccessLedger::default());
    admit(&mut uses, &noting, Queue(1), Access::Write, 0..8);
    admit(&mut uses, &noting, Stream(1), Access::Read, 0..8);
    for stream in GONE..GONE + MANY {
        let waited = admit(&mut uses, &noting, Stream(stream), Access::Read, 0..8);
        assert_eq!(waited, [Queue(1)]);
    }
    let kept = uses.current.len() + uses.current[0].followers.len();
    assert!(kept <= 64, "{kept} of {MANY} are kept");
    let waited = admit(&mut uses, &noting, Queue(1), Access::Write, 0..8);
    assert!(waited.contains(&Stream(1)), "it may be given more work");
    assert!(waited.contains(&Stream(AT_WORK)), "it has not ended");
}

#[test]
fn readers_without_a_guard_are_dropped_when_they_have_ended() {
    let (noting, mut uses) = (Noting::default(), AccessLedger::default());
    admit(&mut uses, &noting, Stream(1), Access::Write, 0..8);
    let hold = read(&mut uses, Queue(1), 0..8);
    std::mem::forget(read(&mut uses, Queue(2), 0..8));
    for queue in 100..100 + MANY {
        drop(read(&mut uses, Queue(queue), 0..8));
    }
    let kept = uses.current.len() + uses.current[0].followers.len();
    assert!(kept <= 64, "{kept} of {MANY} are kept");
    let waited = before_a_writer(&mut uses, 0..8);
    for alive in [Queue(1), Queue(2)] {
        assert!(waited.contains(&alive), "it may be given more work");
    }
    drop(hold);
}

#[test]
fn a_reader_is_asked_anew_once_it_was_given_more_work() {
    let mut uses = AccessLedger::default();
    drop(read(&mut uses, Queue(1), 0..8));
    sweep(&mut uses);
    // Its end is marked now, but more work follows.
    drop(read(&mut uses, Queue(1), 2..4));
    sweep(&mut uses);
    assert_eq!(before_a_writer(&mut uses, 0..8), [Queue(1)]);
}

#[test]
fn a_reader_that_fails_is_reported_and_kept() {
    let mut uses = AccessLedger::keeping(1, STRETCHES);
    drop(read(&mut uses, Queue(FAILED), 0..8));
    let noting = Noting::default();
    let claim = Claim {
        access: Access::Read,
        range: &(0..8),
        is_handed_whole: false,
    };
    uses.admit(&noting, &Stream(1), claim).expect_err("its work failed");
    uses.admit(&noting, &Stream(1), claim)
        .map(std::mem::forget)
        .expect("everyone was waited for");
    assert_eq!(noting.take(), [(Queue(FAILED), None)]);
}

#[test]
fn a_guard_counts_in_the_record_that_takes_over_its_bytes() {
    let mut uses = AccessLedger::default();
    let hold = read(&mut uses, Queue(1), 2..4);
    drop(read(&mut uses, Queue(1), 0..8));
    sweep(&mut uses);
    sweep(&mut uses);
    let beside = before_a_writer(&mut uses, 6..8);
    assert_eq!(beside, [Queue(1)], "a record is as old as its guards");
    drop(hold);
    sweep(&mut uses);
    sweep(&mut uses);
    assert_eq!(before_a_writer(&mut uses, 0..6), []);
}

#[test]
fn a_guard_counts_in_what_is_left_of_its_record() {
    let mut uses = AccessLedger::default();
    drop(read(&mut uses, Queue(1), 0..8));
    let hold = read(&mut uses, Queue(1), 4..8);
    // The writer has the other half.
    assert_eq!(before_a_writer(&mut uses, 0..4), [Queue(1)]);
    sweep(&mut uses);
    sweep(&mut uses);
    let reads = |uses: &AccessLedger<Number>| {
        let of_it = |known: &&Entry<Number>| known.user.is_same(&Queue(1));
        uses.current.iter().filter(of_it).count()
    };
    assert_eq!(reads(&uses), 1);
    drop(hold);
    sweep(&mut uses);
    sweep(&mut uses);
    assert_eq!(reads(&uses), 0);
}

#[test]
fn a_guard_counts_in_merged_stretches() {
    let mut uses = AccessLedger::keeping(USERS, 2);
    drop(read(&mut uses, Queue(1), 0..2));
    let hold = read(&mut uses, Queue(1), 4..6);
    assert_eq!(uses.current.len(), 1);
    sweep(&mut uses);
    sweep(&mut uses);
    assert_eq!(uses.current.len(), 1);
    drop(hold);
    sweep(&mut uses);
    sweep(&mut uses);
    assert_eq!(uses.current.len(), 0);
}

#[test]
fn a_failed_user_without_later_users_is_reported_and_waited_for() {
    let (noting, mut uses) = (Noting::default(), AccessLedger::default());
    let mut stream = FAILED;
    let claim = Claim {
        access: Access::Write,
        range: &(0..8),
        is_handed_whole: false,
    };
    while uses.admit(&noting, &Stream(stream), claim).is_ok() {
        stream += 1;
        assert!(stream < 100, "the failure was not reported");
    }
    noting.take();
    uses.admit(&noting, &Stream(stream), claim)
        .map(drop)
        .expect("everyone was waited for");
    assert!(noting.take().contains(&(Stream(FAILED), None)));
}

#[test]
fn a_user_of_another_view_waits_for_every_user_after_a_failure() {
    let outcome = Arc::<Outcome>::default();
    let noting = Noting {
        outcome: Some(Arc::clone(&outcome)),
        ..Noting::default()
    };
    let mut uses = AccessLedger::default();
    admit(&mut uses, &noting, Queue(1), Access::Read, 0..8);
    admit(&mut uses, &noting, Stream(1), Access::Write, 0..8);
    outcome.told(Err(Error::Empty));
    assert_eq!(uses.take_news(), [Error::Empty.to_string()]);
    assert!(uses.take_news().is_empty());
    // In order it would come after its own work, and after nothing that only reads.
    uses.wait_before(&noting, &Stream(1), Access::Read)
        .expect("everyone was waited for");
    let mut waited = noting.take();
    waited.sort_by_key(|(user, _)| matches!(user, Stream(_)));
    assert_eq!(waited, [(Queue(1), None), (Stream(1), None)]);
    uses.wait_before(&noting, &Stream(1), Access::Read)
        .expect("the order is known again");
    assert_eq!(noting.take(), []);
    assert!(matches!(uses.check(), Err(Error::Empty)), "its own users hear of it");
    uses.check().expect("once");
}

#[test]
fn a_failure_behind_a_hand_off_that_is_still_on_its_way_is_found() {
    let outcomes: [Arc<Outcome>; 2] = Default::default();
    let mut uses = AccessLedger::default();
    for (outcome, place) in outcomes.iter().zip([0..4, 4..8]) {
        let noting = Noting {
            outcome: Some(Arc::clone(outcome)),
            ..Noting::default()
        };
        admit(&mut uses, &noting, Queue(1), Access::Write, place.clone());
        admit(&mut uses, &noting, Stream(1), Access::Write, place);
    }
    uses.check().expect("nothing is known");
    outcomes[1].told(Err(Error::Empty));
    assert!(matches!(uses.check(), Err(Error::Empty)));
    assert!(matches!(&*uses.on_their_way(), [older] if Arc::ptr_eq(older, &outcomes[0])));
    outcomes[0].told(Err(Error::NoSlots));
    assert_eq!(
        uses.take_news(),
        [Error::Empty, Error::NoSlots].map(|error| error.to_string())
    );
    assert!(matches!(uses.check(), Err(Error::NoSlots)));
}

/// Gives a hand-off up while it is waited for, which ends the wait.
struct GivingUp(Arc<Outcome>);

impl Order<Number> for GivingUp {
    fn put(&self, before: &Number, after: &Number) -> Result<Ordered> {
        self.wait(before, Some(after))?;
        Ok(Ordered::Waited)
    }

    fn wait(&self, _: &Number, _: Option<&Number>) -> Result<()> {
        self.0.told(Err(Error::Empty));
        Ok(())
    }
}

#[test]
fn a_hand_off_that_is_given_up_during_a_wait_lets_in_no_user() {
    let claim = Claim {
        access: Access::Write,
        range: &(0..8),
        is_handed_whole: false,
    };
    for by_another_view in [true, false] {
        let outcome = Arc::<Outcome>::default();
        let noting = Noting {
            outcome: Some(Arc::clone(&outcome)),
            ..Noting::default()
        };
        let mut uses = AccessLedger::default();
        admit(&mut uses, &noting, Queue(1), Access::Write, 0..8);
        admit(&mut uses, &noting, Stream(1), Access::Write, 0..8);
        let giving_up = GivingUp(outcome);
        if by_another_view {
            uses.wait_before(&giving_up, &Stream(2), Access::Read)
                .expect("the wait ended");
            assert_eq!(uses.take_news(), [Error::Empty.to_string()]);
            assert!(matches!(&*uses.take_errors(), [Error::Empty]), "kept for its own users");
        } else {
            let refused = uses.admit(&giving_up, &Stream(2), claim).map(drop);
            assert!(matches!(refused, Err(Error::Empty)), "{refused:?}");
        }
        // The order is unknown: the next user comes after the queue too, which the stream did not wait for.
        uses.wait_before(&noting, &Stream(2), Access::Read).expect("waited");
        let waited = noting.take();
        assert!(waited.contains(&(Queue(1), None)), "{waited:?}");
    }
}

/// The first queue does not end in time.
struct Late;

impl Order<Number> for Late {
    fn put(&self, _: &Number, _: &Number) -> Result<Ordered> {
        Err(Error::NoSlots)
    }

    fn wait(&self, before: &Number, _: Option<&Number>) -> Result<()> {
        match before {
            Queue(1) => Err(Error::NoSlots),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_failure_is_no_less_one_because_its_error_was_taken() {
    for by_drain in [true, false] {
        let outcome = Arc::<Outcome>::default();
        let noting = Noting {
            outcome: Some(Arc::clone(&outcome)),
            ..Noting::default()
        };
        let mut uses = AccessLedger::default();
        admit(&mut uses, &noting, Queue(1), Access::Write, 0..8);
        admit(&mut uses, &noting, Stream(1), Access::Write, 0..8);
        outcome.told(Err(Error::Empty));
        if by_drain {
            assert!(matches!(uses.drain(&Late), Err(Error::NoSlots)));
            assert!(matches!(&*uses.take_errors(), [Error::Empty]));
        } else {
            outcome.take_error().expect("taken by whom it concerned too");
            assert_eq!(uses.take_news().len(), 1);
        }
        noting.take();
        uses.wait_before(&noting, &Stream(2), Access::Read).expect("waited");
        let waited = noting.take();
        assert!(waited.contains(&(Queue(1), None)), "{waited:?}");
        uses.check().expect("the error was taken");
    }
}

/// What an earlier one failed to write may have become part of what a later one wrote.
#[test]
fn a_writer_that_another_one_followed_is_asked_after_a_read_too() {
    let (noting, mut uses) = (Noting::default(), AccessLedger::default());
    admit(&mut uses, &noting, Stream(1), Access::Write, 0..8);
    admit(&mut uses, &noting, Queue(1), Access::Write, 0..8);
    assert_eq!(uses.writers(), [Queue(1), Stream(1)]);
}

#[test]
fn a_user_of_another_view_waits_for_users_that_conflict() {
    use Access::{Read, Write};
    for (theirs, own, waits) in [
        (Read, Read, false),
        (Read, Write, true),
        (Write, Read, true),
        (Write, Write, true),
    ] {
        let (noting, mut uses) = (Noting::default(), AccessLedger::default());
        admit(&mut uses, &noting, Queue(1), theirs, 0..8);
        uses.wait_before(&noting, &Queue(2), own).expect("waited");
        let waited = noting.take().len();
        assert_eq!(waited, usize::from(waits), "{own:?} after {theirs:?}");
    }
}
