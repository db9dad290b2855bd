//! Memory of one process in another.
//!
//! ```text
//!   process A                       link                        process B
//!   Shared<T> --export--> Joint<T> ========= Joint<T> <--import-- Bridge
//!                            |    turn  --->    |
//!                            |    <---  turn    |
//!                    cl, hip, ...            cl, hip, ...
//! ```
//!
//! A [`Link`] is a connection to one other process. [`Shared::export`](crate::Shared::export) sends what the other
//! process needs to reach the memory, [`Bridge::import`](crate::Bridge::import) receives it, and each side then holds a
//! [`Joint`]. One of the two has the *turn*, at first the exporter; it alone can use the memory, and [`Joint::pass`]
//! passes the turn once this side's work has ended. So the two processes never work on the memory at the same time, and
//! each sees the other's writes.
//!
//! One link carries one buffer. When either process ends, for whatever reason, the system hangs up the link, and the
//! other side's next operation that needs it returns that as an error.

mod export;
mod import;
mod joint;
mod lent;
mod link;
mod listener;
mod message;
mod socket_path;

pub use export::{ExportedFd, NotExported};
pub use joint::Joint;
pub use link::{Link, LinkEnd};
pub use listener::Listener;

use crate::error::{PeerError, Process};
use crate::values::Carrier;
