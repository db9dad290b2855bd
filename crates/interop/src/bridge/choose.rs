//! Which of the proven routes to take.

use std::sync::Arc;

use super::Options;
use crate::values::RouteReport;
use crate::{Error, Policy, Result, Route};

/// The permitted routes, in order of preference.
pub(super) fn choose(routes: &[RouteReport], options: &Options) -> Result<Arc<[Route]>> {
    let works = |route: Route| routes.iter().any(|report| report.route == route && report.works());
    if let Some(route) = options.route {
        return if works(route) {
            Ok([route].into())
        } else {
            Err(reasons(routes.iter().filter(|report| report.route == route)))
        };
    }
    let automatic = || {
        Route::ALL
            .into_iter()
            .filter(|&route| works(route) && route.is_automatic())
    };
    let direct: Vec<Route> = automatic().filter(|route| !route.is_copy()).collect();
    let permitted = match options.policy {
        Policy::DirectOnly => direct,
        Policy::PreferDirect if !direct.is_empty() => direct,
        Policy::PreferDirect | Policy::AllowCopy => automatic().collect(),
    };
    if permitted.is_empty() {
        return Err(reasons(routes.iter()));
    }
    Ok(permitted.into())
}

fn reasons<'a>(routes: impl Iterator<Item = &'a RouteReport>) -> Error {
    let reason = |report: &RouteReport| match &report.outcome {
        Err(reason) => reason.clone(),
        Ok(_) if report.route.is_copy() => "it works, but it copies, which the policy does not permit".into(),
        Ok(_) => "it works, but is used only on request (Options::route)".into(),
    };
    Error::NotPossible {
        tried: routes.map(|report| (report.route, reason(report))).collect(),
    }
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
                impossible: false,
            },
            RouteReport {
                route: Route::HostPinned,
                outcome: Err("copied".into()),
                impossible: false,
            },
            RouteReport {
                route: Route::Staging,
                outcome: Ok(Residency::Vram),
                impossible: false,
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
        let error = choose(&reports(false), &with(Policy::DirectOnly)).expect_err("no direct route");
        let text = error.to_string();
        assert!(
            matches!(error, Error::NotPossible { ref tried } if tried.len() == 3),
            "{text}"
        );
        assert!(text.contains("no SVM") && text.contains("does not permit"), "{text}");
        let routes = choose(&reports(false), &with(Policy::PreferDirect)).expect("may copy");
        assert_eq!(*routes, [Route::Staging]);
    }

    #[test]
    fn after_a_failure_direct_routes_follow_and_copies_only_where_allowed() {
        let mut reports = reports(true);
        reports[1].outcome = Ok(Residency::HostPinned);
        let direct = [Route::SvmCoarse, Route::HostPinned];
        for policy in [Policy::DirectOnly, Policy::PreferDirect] {
            assert_eq!(*choose(&reports, &with(policy)).expect("works"), direct);
        }
        let routes = choose(&reports, &with(Policy::AllowCopy)).expect("works");
        assert_eq!(*routes, [direct.as_slice(), &[Route::Staging]].concat());
    }

    #[test]
    fn a_route_with_a_warning_is_taken_only_by_name() {
        let mut reports = reports(false);
        reports[0].route = Route::SvmFine;
        reports[0].outcome = Ok(Residency::HostPinned);
        let error = choose(&reports, &with(Policy::DirectOnly)).expect_err("not named");
        assert!(
            error
                .to_string()
                .contains("svm-fine: it works, but is used only on request (Options::route)"),
            "{error}"
        );
        let named = Options {
            route: Some(Route::SvmFine),
            ..Options::default()
        };
        assert_eq!(*choose(&reports, &named).expect("named"), [Route::SvmFine]);
    }

    #[test]
    fn a_named_route_is_taken_or_refused_but_never_replaced() {
        let named = |route| Options {
            route: Some(route),
            ..with(Policy::AllowCopy)
        };
        assert_eq!(
            *choose(&reports(true), &named(Route::Staging)).expect("works"),
            [Route::Staging]
        );
        let error = choose(&reports(true), &named(Route::HostPinned)).expect_err("does not work");
        assert_eq!(error.to_string(), "no permitted route works: host-pinned: copied");
    }
}
