use std::fmt;

/// Why one block failed.
#[derive(Debug, thiserror::Error)]
#[error("block {block} failed in stage `{stage}`: {cause}")]
pub struct StageError<E> {
    /// The block's number, counted from 0.
    pub block: u64,
    /// The stage's name; `upload` and `download` are the first and the last.
    pub stage: String,
    /// What happened.
    pub cause: Cause<E>,
}

/// How a stage failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause<E> {
    /// It returned this.
    Failed(E),
    /// It panicked, with this message. The slot is reused for later blocks.
    Panicked(String),
}

impl<E: fmt::Display> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Panicked(message) => write!(f, "panic: {message}"),
        }
    }
}
