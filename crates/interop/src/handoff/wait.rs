use std::sync::Arc;
use std::time::Duration;

use super::{Outcome, Parties};
use crate::access::User;
use crate::{Error, Result};

/// Blocks until what `before` has so far has ended, or the limit has passed.
///
/// Without a limit these are `clFinish` and `hipStreamSynchronize`. Neither can be cancelled, so with one a driver's
/// thread signals the end, and this one sleeps until then.
pub(crate) fn wait_within(before: &User, limit: Option<Duration>, parties: &Parties) -> Result<()> {
    let Some(limit) = limit else {
        return before.wait();
    };
    let outcome = Arc::<Outcome>::default();
    let theirs = Arc::clone(&outcome);
    match before {
        User::Cl(queue) => {
            let event = queue.record()?;
            event.on_complete(move |result| theirs.told(result.map_err(Error::from)))?;
            outcome.wait_for(limit, || parties.late(limit))?;
            // At once now; OpenCL's layer learns that the commands have ended.
            Ok(event.wait()?)
        }
        User::Hip(stream) => {
            stream.on_complete(move |result| theirs.told(result.map_err(Error::from)))?;
            outcome.wait_for(limit, || parties.late(limit))?;
            // Other threads may have queued more, which is not waited for.
            match stream.is_idle()? {
                true => Ok(stream.synchronize()?),
                false => Ok(()),
            }
        }
    }
}
