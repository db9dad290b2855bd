//! What `hipcl doctor --json` found on real hardware, see `evidence/README.md`.

use std::path::Path;

use interop::Route;
use serde_json::Value;

/// The form of the file that is understood (`hipcl::doctor::SCHEMA`).
const SCHEMA: u64 = 1;

/// A report of one machine.
#[derive(Debug)]
pub struct Evidence {
    platform: String,
    taken: String,
    /// The card, its driver and the day.
    place: String,
    routes: Vec<Value>,
}

/// Every report that is kept, newest first.
pub fn all() -> Vec<Evidence> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/routes/evidence");
    let mut all: Vec<Evidence> = std::fs::read_dir(folder)
        .expect("the folder of evidence")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("readable");
            Evidence::read(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
        })
        .collect();
    all.sort_by(|one, other| other.taken.cmp(&one.taken));
    all
}

/// The cell of a route, if a machine with this platform tells: the newest on which it works, else the newest.
pub fn cell(all: &[Evidence], platform: &str, route: Route) -> Option<String> {
    let told: Vec<(bool, String)> = all
        .iter()
        .filter(|evidence| evidence.platform == platform)
        .filter_map(|evidence| evidence.cell(route))
        .collect();
    let best = told.iter().find(|(works, _)| *works).or(told.first());
    best.map(|(_, cell)| cell.clone())
}

impl Evidence {
    fn read(text: &str) -> Result<Self, String> {
        let report: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if report["schema"] != SCHEMA {
            return Err(format!("schema {}, not {SCHEMA}", report["schema"]));
        }
        let text = |value: &Value, what: &str| {
            let text = value.as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or(format!("no {what}"))
        };
        let platform = text(&report["platform"], "platform")?;
        if !["amd", "nvidia"].contains(&&*platform) {
            return Err(format!("platform {platform} is no hardware"));
        }
        let taken = text(&report["taken"], "date")?;
        let card = text(&report["pair"]["hip"], "pair of devices")?;
        let routes = report["routes"].as_array().ok_or("no routes")?.clone();
        for route in &routes {
            let agree = |crossing: &Value| crossing["agrees"] == true;
            let crossings = route["crossings"].as_array();
            let proven = crossings.is_some_and(|all| all.len() == 2 && all.iter().all(agree));
            if route["works"] == true && !proven {
                return Err(format!(
                    "{} works, and no pattern arrived in both directions",
                    route["route"]
                ));
            }
        }
        let opencl = report["opencl_devices"].as_array();
        let driver = opencl
            .into_iter()
            .flatten()
            .find(|device| device["name"] == report["pair"]["opencl"])
            .and_then(|device| device["driver"].as_str())
            .ok_or("no driver of the pair's OpenCL device")?;
        let day = taken.split('T').next().unwrap_or_default();
        Ok(Self {
            place: format!("{card}, driver {driver}, {day}"),
            platform,
            taken,
            routes,
        })
    }

    /// Whether the route works, and the cell.
    fn cell(&self, route: Route) -> Option<(bool, String)> {
        let found = |told: &&Value| told["route"] == route.name();
        let told = self.routes.iter().find(found)?;
        let place = &self.place;
        if told["works"] == true {
            let residency = told["residency"].as_str().unwrap_or("unknown");
            return Some((true, format!("real: {residency} ({place})")));
        }
        let reason = told["reason"].as_str().unwrap_or("no reason was told");
        // addresses differ from run to run, the last clause does not
        let clause = reason.rsplit(": ").next().unwrap_or(reason);
        let state = match told["impossible"] == true {
            true => "not possible",
            false => "fails",
        };
        Some((false, format!("real: {state}, {clause} ({place})")))
    }
}

/// A report with these routes.
#[cfg(test)]
fn report(platform: &str, taken: &str, routes: &str) -> String {
    format!(
        "{{\"schema\":1,\"platform\":\"{platform}\",\"taken\":\"{taken}\",\
         \"pair\":{{\"hip\":\"Card\",\"opencl\":\"chip\"}},\
         \"opencl_devices\":[{{\"name\":\"chip\",\"driver\":\"9.1\"}}],\"routes\":[{routes}]}}"
    )
}

const WORKS: &str = "{\"route\":\"svm-coarse\",\"works\":true,\"residency\":\"vram\",\
    \"crossings\":[{\"agrees\":true},{\"agrees\":true}]}";
const FAILS: &str = "{\"route\":\"svm-coarse\",\"works\":false,\"impossible\":false,\
    \"reason\":\"0x7f: a call failed: no memory\"}";

#[test]
fn a_route_that_worked_on_hardware_is_real_with_card_driver_and_day() {
    let old = Evidence::read(&report("amd", "2026-01-02T03:04:05Z", WORKS)).expect("evidence");
    let new = Evidence::read(&report("amd", "2026-03-01T00:00:00Z", FAILS)).expect("evidence");
    let newest_first = [new, old];
    let of = |all: &[Evidence], platform| cell(all, platform, Route::SvmCoarse);
    assert_eq!(
        of(&newest_first, "amd").as_deref(),
        Some("real: vram (Card, driver 9.1, 2026-01-02)")
    );
    assert_eq!(
        of(&newest_first[..1], "amd").as_deref(),
        Some("real: fails, no memory (Card, driver 9.1, 2026-03-01)")
    );
    assert_eq!(of(&newest_first, "nvidia"), None);
    assert_eq!(cell(&newest_first, "amd", Route::Managed), None);
}

#[test]
fn evidence_that_contradicts_itself_or_is_of_no_hardware_is_refused() {
    let refused = |text: &str| Evidence::read(text).expect_err("refused");
    let half = WORKS.replacen("{\"agrees\":true}", "{\"agrees\":false}", 1);
    assert!(refused(&report("amd", "2026", &half)).contains("both directions"));
    assert!(refused(&report("host", "2026", WORKS)).contains("no hardware"));
    let newer = report("amd", "2026", WORKS).replace("\"schema\":1", "\"schema\":2");
    assert!(refused(&newer).contains("schema 2"));
    let lonely = report("amd", "2026", WORKS).replace("\"hip\":\"Card\"", "\"hip\":null");
    assert!(refused(&lonely).contains("no pair"));
}
