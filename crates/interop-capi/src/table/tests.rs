//! The table on real threads; `cargo xtask miri` and `tsan` run these too.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use super::slots::{FIRST, INDEX_BITS};
use super::word::{Miss, Place};
use super::{Alone, Held, Table};

fn table<T>(most: u32) -> &'static Table<T> {
    Box::leak(Box::new(Table::with_most(most)))
}

/// Counts the drops of what it stands in.
struct Counted(u32, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

fn drops(count: &Arc<AtomicUsize>) -> usize {
    count.load(Ordering::Relaxed)
}

#[test]
fn places_stay_right_while_the_table_grows() {
    let table = table(1 << INDEX_BITS);
    // Beyond the fourth chunk.
    let most = FIRST * 5;
    let held: Vec<(Place, Held<u32>)> = (0..most)
        .map(|value| {
            let place = table.insert(value).unwrap();
            (place, table.hold(place).ok().unwrap())
        })
        .collect();
    for (value, (place, object)) in (0..most).zip(&held) {
        assert_eq!(
            *place,
            Place {
                index: value,
                generation: 0
            }
        );
        assert_eq!((**object, *table.hold(*place).ok().unwrap()), (value, value));
    }
}

#[test]
fn a_place_that_was_never_given_is_unknown_and_one_of_the_past_is_stale() {
    let table = table(1 << INDEX_BITS);
    let miss = |index, generation| table.hold(Place { index, generation }).err();
    assert_eq!(miss(0, 0), Some(Miss::Unknown), "no chunk");
    let place = table.insert(1).unwrap();
    assert_eq!(miss(0, 0), None);
    assert_eq!(miss(0, 1), Some(Miss::Unknown), "a later generation");
    assert_eq!(miss(1, 0), Some(Miss::Unknown), "a slot that had no object yet");
    assert_eq!(miss(u32::MAX, 0), Some(Miss::Unknown), "no slot");
    assert_eq!(table.retire(place), Ok(()));
    assert_eq!(miss(0, 0), Some(Miss::Stale));
    assert_eq!(table.retire(place), Err(Miss::Stale));
    assert_eq!(table.take(place), Err(Miss::Stale));
    let next = table.insert(2).unwrap();
    assert_eq!((next.index, next.generation), (0, 1), "the slot is used again");
    assert_eq!(miss(0, 0), Some(Miss::Stale));
    assert_eq!(*table.hold(next).ok().unwrap(), 2);
}

#[test]
fn a_slot_whose_generations_are_used_up_is_not_used_again() {
    let table = table(1 << INDEX_BITS);
    let first = table.insert(1).unwrap();
    assert_eq!(table.retire(first), Ok(()));
    table.set_generation(first.index, u32::MAX);
    let last = table.insert(2).unwrap();
    assert_eq!((last.index, last.generation), (first.index, u32::MAX));
    assert_eq!(*table.hold(last).ok().unwrap(), 2);
    assert_eq!(table.take(last), Ok(2));
    assert_ne!(table.insert(3).unwrap().index, first.index);
    assert_eq!(table.hold(last).err(), Some(Miss::Stale));
}

#[test]
fn there_are_no_more_objects_than_the_table_has_places() {
    let table = table(2);
    let (one, _two) = (table.insert(1).unwrap(), table.insert(2).unwrap());
    assert_eq!(table.insert(3), None);
    let held = table.hold(one).ok().unwrap();
    assert_eq!(table.retire(one), Ok(()));
    assert_eq!(table.insert(3), None, "the last holder still has it");
    drop(held);
    assert_eq!(table.insert(3).unwrap().index, one.index);
}

#[test]
fn an_object_is_dropped_once_after_its_last_holder() {
    let (table, count) = (table(8), Arc::new(AtomicUsize::new(0)));
    let insert = || table.insert(Counted(1, count.clone())).unwrap();
    let place = insert();
    assert_eq!(table.retire(place), Ok(()));
    assert_eq!(drops(&count), 1, "without a holder, at once");

    let place = insert();
    let (one, two) = (table.hold(place).ok().unwrap(), table.share(place).ok().unwrap());
    assert_eq!(table.retire(place), Ok(()));
    drop(one);
    assert_eq!(drops(&count), 1);
    drop(two);
    assert_eq!(drops(&count), 2);

    let place = insert();
    let alone = table.alone(place).ok().unwrap();
    let beside = table.hold(place).ok().unwrap();
    assert_eq!(table.retire(place), Ok(()));
    drop(alone);
    assert_eq!((drops(&count), beside.0), (2, 1));
    drop(beside);
    assert_eq!(drops(&count), 3);

    drop(table.take(insert()));
    assert_eq!(drops(&count), 4, "who takes it drops it");
}

#[test]
fn one_who_is_alone_keeps_out_all_but_holders_that_come_later() {
    let table = table(8);
    let place = table.insert(()).unwrap();
    let held: Held<()> = table.hold(place).ok().unwrap();
    assert_eq!(table.alone(place).err(), Some(Miss::Busy));
    assert_eq!(table.take(place), Err(Miss::Busy));
    drop(held);
    let alone: Alone<()> = table.alone(place).ok().unwrap();
    assert_eq!(table.share(place).err(), Some(Miss::Busy));
    assert_eq!(table.alone(place).err(), Some(Miss::Busy));
    let held = table.hold(place).ok().unwrap();
    drop(alone);
    assert_eq!(table.alone(place).err(), Some(Miss::Busy), "the holder is still there");
    assert!(table.share(place).is_ok());
    drop(held);
    assert!(table.alone(place).is_ok());
}

#[test]
fn a_panic_of_an_objects_drop_leaves_the_place_usable() {
    struct Bomb(bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.0, "planted");
        }
    }
    let table = table(1);
    let place = table.insert(Bomb(true)).unwrap();
    let held = table.hold(place).ok().unwrap();
    assert_eq!(table.retire(place), Ok(()));
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(held)));
    assert!(dropped.is_err());
    assert_eq!(table.insert(Bomb(false)).unwrap().index, place.index);
}

/// Threads look up, lock out and hold what others retire and replace: all see whole objects, and each is dropped once.
#[test]
fn threads_look_up_what_others_retire() {
    const ROUNDS: u32 = if cfg!(miri) { 40 } else { 4000 };
    let (table, count) = (table::<Counted>(64), Arc::new(AtomicUsize::new(0)));
    let shown: [(AtomicU32, AtomicU32); 4] = Default::default();
    let begin = Barrier::new(4);
    let publish = |value: u32, spot: usize| {
        let place = table.insert(Counted(value, count.clone())).unwrap();
        shown[spot].0.store(place.index, Ordering::Relaxed);
        shown[spot].1.store(place.generation, Ordering::Relaxed);
    };
    let read = |spot: usize| Place {
        index: shown[spot].0.load(Ordering::Relaxed),
        generation: shown[spot].1.load(Ordering::Relaxed),
    };
    // The value of a spot's object tells the spot.
    (0..4).for_each(|spot| publish(spot as u32, spot));
    std::thread::scope(|scope| {
        for spot in [0, 1] {
            let (begin, publish) = (&begin, &publish);
            scope.spawn(move || {
                begin.wait();
                for round in 1..=ROUNDS {
                    let place = read(spot);
                    // A place read in two parts may be mixed of two; the owner of the spot reads its own.
                    assert_eq!(table.retire(place), Ok(()));
                    assert_eq!(table.hold(place).err(), Some(Miss::Stale));
                    publish(round * 4 + spot as u32, spot);
                }
            });
        }
        for _ in 0..2 {
            let begin = &begin;
            scope.spawn(move || {
                begin.wait();
                for round in 0..ROUNDS as usize {
                    let place = read(round % 4);
                    if let Ok(object) = table.hold(place) {
                        assert!(object.0 <= ROUNDS * 4 + 3);
                    }
                    if let Ok(object) = table.alone(place) {
                        assert!(object.0 <= ROUNDS * 4 + 3);
                    }
                }
            });
        }
    });
    assert_eq!(drops(&count), 2 * ROUNDS as usize, "all but the four that are alive");
    (0..4).for_each(|spot| assert_eq!(table.retire(read(spot)), Ok(())));
    assert_eq!(drops(&count), 2 * ROUNDS as usize + 4);
}

/// Each holder reads before it goes, and the last one frees: without the fence in `end`, Miri sees a race.
#[test]
fn the_last_holder_comes_after_what_the_others_did() {
    let table = table(1);
    for round in 0..4 {
        let place = table.insert(Box::new(round)).unwrap();
        let holders = [0, 1].map(|_| table.hold(place).ok().unwrap());
        assert_eq!(table.retire(place), Ok(()));
        std::thread::scope(|scope| {
            for holder in holders {
                scope.spawn(move || assert_eq!(**holder, round));
            }
        });
    }
}

/// What one who is alone writes without synchronisation, the next one sees.
#[test]
fn those_who_are_alone_lose_no_update() {
    const EACH: u32 = if cfg!(miri) { 25 } else { 1000 };
    struct Cell(std::cell::UnsafeCell<u32>);
    // SAFETY: the test reaches the value only through `Alone`.
    unsafe impl Sync for Cell {}
    let table = table(1);
    let place = table.insert(Cell(0.into())).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut done = 0;
                while done < EACH {
                    if let Ok(alone) = table.alone(place) {
                        // SAFETY: no other thread has it.
                        unsafe { *alone.0.get() += 1 };
                        done += 1;
                    } else {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!(table.take(place).ok().unwrap().0.into_inner(), 4 * EACH);
}
