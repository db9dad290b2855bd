//! [`Table`] under shuttle, which tries many orders of the threads' steps. It runs them one at a time, so it says nothing
//! about the orderings of the atomic operations: those are argued where they are, and checked by Miri on real threads.

/// Shuttle's primitives in the shape of [`super::sync`].
mod sync {
    pub(super) use shuttle::sync::MutexGuard;
    pub(super) use shuttle::sync::atomic::{AtomicPtr, AtomicU64, fence};

    pub(super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) const fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}

// The very source of the table, over shuttle's primitives.
#[allow(clippy::duplicate_mod, dead_code, reason = "that is the point")]
#[path = "slots.rs"]
mod slots;
use super::word;

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use shuttle::thread;
use slots::Table;
use word::{Miss, Place};

const ORDERS: usize = 3000;

/// An object that knows its holders, and counts those of its kind that are alive.
struct Thing {
    value: u32,
    alone: AtomicU32,
    sharing: AtomicU32,
    alive: Arc<AtomicUsize>,
}

impl Thing {
    fn new(value: u32, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self {
            value,
            alone: AtomicU32::new(0),
            sharing: AtomicU32::new(0),
            alive: alive.clone(),
        }
    }

    fn use_alone(&self) {
        assert_eq!(self.alone.fetch_add(1, Ordering::SeqCst), 0, "two are alone");
        assert_eq!(self.sharing.load(Ordering::SeqCst), 0, "alone beside one that shares");
        thread::yield_now();
        self.alone.fetch_sub(1, Ordering::SeqCst);
    }

    fn share(&self) {
        self.sharing.fetch_add(1, Ordering::SeqCst);
        assert_eq!(self.alone.load(Ordering::SeqCst), 0, "shared beside one that is alone");
        thread::yield_now();
        self.sharing.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Thing {
    fn drop(&mut self) {
        assert_eq!(self.alone.load(Ordering::SeqCst), 0, "dropped in use");
        assert_eq!(self.sharing.load(Ordering::SeqCst), 0, "dropped in use");
        // A second drop of one object would count below those that are alive.
        assert!(self.alive.fetch_sub(1, Ordering::SeqCst) > 0);
    }
}

fn table(most: u32) -> &'static Table<Thing> {
    Box::leak(Box::new(Table::with_most(most)))
}

type User = fn(&'static Table<Thing>, Place);

/// Two users and a retirer of one object, who then puts the next object into the slot.
fn use_and_retire(table: &'static Table<Thing>, alive: &Arc<AtomicUsize>, users: [User; 2]) {
    let place = table.insert(Thing::new(1, alive)).unwrap();
    let users = users.map(|user| thread::spawn(move || user(table, place)));
    let retiring = {
        let alive = alive.clone();
        thread::spawn(move || {
            assert_eq!(table.retire(place), Ok(()));
            assert_eq!(table.hold(place).err(), Some(Miss::Stale));
            let next = table.insert(Thing::new(2, &alive)).unwrap();
            assert_ne!(next, place, "one place given twice");
            assert_eq!(table.hold(next).ok().unwrap().value, 2);
            next
        })
    };
    for user in users {
        user.join().unwrap();
    }
    let next = retiring.join().unwrap();
    assert_eq!(
        alive.load(Ordering::SeqCst),
        1,
        "the retired object is dropped, and the next is not"
    );
    assert_eq!(table.retire(next), Ok(()));
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

fn holds(table: &'static Table<Thing>, place: Place) {
    match table.hold(place) {
        Ok(thing) => {
            thread::yield_now();
            assert_eq!(thing.value, 1, "another object");
        }
        Err(miss) => assert_eq!(miss, Miss::Stale),
    }
}

fn shares(table: &'static Table<Thing>, place: Place) {
    match table.share(place) {
        Ok(thing) => {
            assert_eq!(thing.value, 1, "another object");
            thing.share();
        }
        Err(miss) => assert_ne!(miss, Miss::Unknown),
    }
}

fn is_alone(table: &'static Table<Thing>, place: Place) {
    match table.alone(place) {
        Ok(thing) => {
            assert_eq!(thing.value, 1, "another object");
            thing.use_alone();
        }
        Err(miss) => assert_ne!(miss, Miss::Unknown),
    }
}

#[test]
fn a_retired_object_lasts_as_long_as_its_holders_and_no_place_finds_another() {
    const USERS: [[User; 2]; 5] = [
        [holds, holds],
        [holds, shares],
        [shares, is_alone],
        [holds, is_alone],
        [is_alone, is_alone],
    ];
    for users in USERS {
        shuttle::check_random(move || use_and_retire(table(2), &Arc::default(), users), ORDERS);
    }
}

#[test]
fn one_of_those_who_retire_or_take_an_object_gets_it() {
    shuttle::check_random(
        || {
            let (table, alive) = (table(2), Arc::default());
            let place = table.insert(Thing::new(1, &alive)).unwrap();
            let holder = thread::spawn(move || shares(table, place));
            let takers = [0, 1].map(|_| thread::spawn(move || table.take(place).map(|thing| thing.value)));
            let retiring = thread::spawn(move || table.retire(place));
            holder.join().unwrap();
            let taken = takers.map(|taker| taker.join().unwrap());
            let retired = retiring.join().unwrap();
            let got = taken.iter().filter(|taken| taken.is_ok()).count() + usize::from(retired.is_ok());
            assert_eq!(got, 1, "{taken:?} {retired:?}");
            assert_eq!(alive.load(Ordering::SeqCst), 0);
        },
        ORDERS,
    );
}

#[test]
fn new_objects_have_places_of_their_own_while_the_table_grows() {
    shuttle::check_random(
        || {
            let (table, alive) = (table(64), Arc::default());
            // All but two of the first chunk.
            let first: Vec<Place> = (0..30).map(|_| table.insert(Thing::new(0, &alive)).unwrap()).collect();
            let adding = [1, 2].map(|worker| {
                let alive = Arc::clone(&alive);
                thread::spawn(move || {
                    let places =
                        [0, 10, 20].map(|more| (more + worker, table.insert(Thing::new(more + worker, &alive))));
                    for (value, place) in places {
                        assert_eq!(table.hold(place.unwrap()).ok().unwrap().value, value);
                    }
                    places.map(|(_, place)| place.unwrap())
                })
            });
            let mut places: Vec<Place> = adding.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
            places.extend(first);
            let mut indices: Vec<u32> = places.iter().map(|place| place.index).collect();
            indices.sort_unstable();
            assert!(indices.into_iter().eq(0..36));
            assert!(places.into_iter().all(|place| table.retire(place).is_ok()));
            assert_eq!(alive.load(Ordering::SeqCst), 0);
        },
        ORDERS / 10,
    );
}
