//! `--route`, with the same names in every command.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use interop::Route;

/// Takes the name of any route.
pub(crate) fn names() -> impl TypedValueParser<Value = Route> {
    PossibleValuesParser::new(Route::ALL.map(Route::name)).try_map(|name| name.parse::<Route>())
}
