use super::MOST;
use crate::Error;

/// Errors that a caller takes later: the first ones, and how many more there were.
#[derive(Default)]
pub(crate) struct Deferred {
    kept: Vec<Error>,
    more: usize,
}

impl Deferred {
    pub(crate) fn push(&mut self, error: Error) {
        match self.kept.len() < MOST {
            true => self.kept.push(error),
            false => self.more += 1,
        }
    }

    /// Oldest first.
    pub(crate) fn take(&mut self) -> Vec<Error> {
        let Self { mut kept, more } = std::mem::take(self);
        if more > 0 {
            kept.push(Error::MoreDeferred { count: more });
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_beyond_the_bound_are_counted() {
        let mut deferred = Deferred::default();
        for _ in 0..MOST {
            deferred.push(Error::Empty);
        }
        assert_eq!(deferred.take().len(), MOST, "all of them, and nothing else");
        for _ in 0..MOST + 3 {
            deferred.push(Error::Empty);
        }
        let taken = deferred.take();
        assert!(matches!(
            taken[MOST - 1..],
            [Error::Empty, Error::MoreDeferred { count: 3 }]
        ));
        assert!(deferred.take().is_empty());
    }
}
