//! Which of the proven routes to take.

use super::Options;
use crate::report::RouteReport;
use crate::{Error, Policy, Result, Route};
use std::sync::Arc;

/// The route to take first, and those to try if an allocation on it fails.
pub(super) fn choose(routes: &[RouteReport], options: &Options) -> Result<(Route, Arc<[Route]>)> {
    let works = |route: Route| {
        routes
            .iter()
            .any(|report| report.route == route && report.works())
    };
    let reasons = |only: Option<Route>| {
        let tried = routes
            .iter()
            .filter(|report| only.is_none_or(|route| route == report.route))
            .map(|report| {
                let reason = report.outcome.clone().err();
                (
                    report.route,
                    reason.unwrap_or_else(|| "works, but copies, which is not permitted".into()),
                )
            })
            .collect();
        Error::NotPossible { tried }
    };
    if let Some(route) = options.route {
        return if works(route) {
            Ok((route, Arc::default()))
        } else {
            Err(reasons(Some(route)))
        };
    }
    let may_copy = options.policy != Policy::DirectOnly;
    let mut usable = Route::ALL
        .into_iter()
        .filter(|&route| works(route) && (may_copy || !route.is_copy()));
    let first = usable.next().ok_or_else(|| reasons(None))?;
    let fallbacks = match options.policy {
        Policy::AllowCopy => usable.collect(),
        Policy::DirectOnly | Policy::PreferDirect => Arc::default(),
    };
    Ok((first, fallbacks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Residency;

    fn reports(direct_works: bool) -> Vec<RouteReport> {
        let direct = if direct_works {
            Ok(Residency::Vram)
        } else {
            Err("no SVM".to_owned())
        };
        vec![
            RouteReport {
                route: Route::SvmCoarse,
                outcome: direct,
            },
            RouteReport {
                route: Route::HostPinned,
                outcome: Err("copied".into()),
            },
            RouteReport {
                route: Route::Staging,
                outcome: Ok(Residency::Vram),
            },
        ]
    }

    fn with(policy: Policy) -> Options {
        Options {
            policy,
            ..Options::default()
        }
    }

    #[test]
    fn a_copy_is_never_taken_without_permission() {
        let error =
            choose(&reports(false), &with(Policy::DirectOnly)).expect_err("no direct route");
        let text = error.to_string();
        assert!(
            matches!(error, Error::NotPossible { ref tried } if tried.len() == 3),
            "{text}"
        );
        assert!(
            text.contains("no SVM") && text.contains("not permitted"),
            "{text}"
        );
        let (route, _) = choose(&reports(false), &with(Policy::PreferDirect)).expect("may copy");
        assert_eq!(route, Route::Staging);
    }

    #[test]
    fn only_allow_copy_falls_back_after_a_failed_allocation() {
        let (route, fallbacks) =
            choose(&reports(true), &with(Policy::PreferDirect)).expect("works");
        assert_eq!((route, fallbacks.len()), (Route::SvmCoarse, 0));
        let (route, fallbacks) = choose(&reports(true), &with(Policy::AllowCopy)).expect("works");
        assert_eq!(
            (route, &*fallbacks),
            (Route::SvmCoarse, [Route::Staging].as_slice())
        );
    }

    #[test]
    fn a_named_route_is_taken_or_refused_but_never_replaced() {
        let named = |route| Options {
            route: Some(route),
            ..with(Policy::AllowCopy)
        };
        assert_eq!(
            choose(&reports(true), &named(Route::Staging))
                .expect("works")
                .0,
            Route::Staging
        );
        let error = choose(&reports(true), &named(Route::HostPinned)).expect_err("does not work");
        assert_eq!(
            error.to_string(),
            "no permitted route works: host-pinned: copied"
        );
    }
}
