//! The feature `tracing`: every call is an event with its arguments.

mod common;

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use common::setup;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps what events of this crate say.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<(Level, String)>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}: {value:?}", field.name()).unwrap();
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        write!(self.0, "{}: {value}", field.name()).unwrap();
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("rocblas")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_call_is_an_event_with_its_arguments() {
    let setup = setup();
    let listener = Listener::default();
    tracing::subscriber::with_default(listener.clone(), || {
        let mut x = setup.upload(&[1.0_f32; 6]);
        let slice = x.on_mut(&setup.stream).unwrap();
        setup.blas.scal(2.0, slice.into()).unwrap();
    });
    let heard = listener.0.lock().unwrap();
    let expected = (Level::TRACE, "call: rocblas_sscal(n 6, incx 1)".to_owned());
    assert_eq!(*heard, [expected]);
}
