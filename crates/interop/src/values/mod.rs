//! Plain values that every layer uses: names of ways, places and directions, and what was found about them.

mod access;
mod carrier;
pub(crate) mod deadline;
mod direction;
mod grade;
mod report;
mod residency;
mod route;
mod side;

pub(crate) use access::Access;
pub use carrier::{Carrier, UnknownCarrier};
pub use direction::Direction;
pub use grade::{Grade, GradeReport, Mechanisms, UnknownGrade};
pub use report::{BridgeReport, Failover, Pairing, RouteReport};
pub use residency::Residency;
pub use route::{Policy, Route, UnknownRoute};
pub(crate) use side::Side;
