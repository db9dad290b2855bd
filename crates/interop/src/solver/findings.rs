use rocblas::solver::{Failure, Info};

use crate::Result;
use crate::meter::{Category, Scope};

/// A solver's findings, one integer for each matrix, still on the device. Until [`check`](Self::check) succeeds, there
/// may be no inverse or solution at all.
///
/// Checking waits for the stream and copies 4 bytes for each matrix, counted as [`Category::Control`]; the matrices
/// stay where they are.
#[derive(Debug)]
#[must_use = "a solver reports a singular matrix only through `Findings::check`"]
pub struct Findings(Option<Info>);

impl From<Info> for Findings {
    fn from(info: Info) -> Self {
        Self(Some(info))
    }
}

impl Findings {
    pub(super) fn from_option(info: Option<Info>) -> Self {
        Self(info)
    }

    /// Waits for the call and returns whether it succeeded for each matrix. May be called again.
    ///
    /// # Errors
    /// [`rocblas::Error::NotPositiveDefinite`] or [`rocblas::Error::Singular`], for a batch in a
    /// [`rocblas::Error::InBatch`] with the first matrix that failed. Or earlier work of the stream failed.
    #[track_caller]
    pub fn check(&self) -> Result<()> {
        let _scope = Scope::enter(Category::Control);
        Ok(self.0.as_ref().map_or(Ok(()), Info::check)?)
    }

    /// Waits for the call and returns which matrices failed and why, in ascending order. The others are correct.
    ///
    /// # Errors
    /// Earlier work of the stream failed, so that nothing is known about the matrices.
    #[track_caller]
    pub fn failures(&self) -> Result<Vec<Failure>> {
        let _scope = Scope::enter(Category::Control);
        Ok(self.0.as_ref().map_or(Ok(Vec::new()), Info::failures)?)
    }
}
