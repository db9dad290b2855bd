//! What `hipcl doctor --json` found on real hardware and on emulated GPUs, see `evidence/README.md`.

use std::path::Path;

use interop::{Carrier, Route};
use serde_json::Value;

/// The form of the file that is understood (`hipcl::doctor::SCHEMA`).
const SCHEMA: u64 = 1;

/// A report of one machine.
#[derive(Debug)]
pub struct Evidence {
    platform: String,
    taken: String,
    grade: Grade,
    /// The card, its driver and the day.
    place: String,
    routes: Vec<Value>,
    /// Of a report that is older than their probe, none.
    carriers: Vec<Value>,
}

/// How much a finding is worth, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The vendor's libraries on an emulated GPU.
    Emulated,
    Real,
}

impl std::fmt::Display for Grade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Emulated => "emulated",
            Self::Real => "real",
        })
    }
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

/// What a machine found of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub grade: Grade,
    pub works: bool,
    /// In a word or two.
    pub state: String,
    /// Why it does not work.
    pub reason: Option<String>,
    /// The card, its driver and the day.
    pub place: String,
}

/// What is known of a route, if a machine with this platform tells: hardware before emulated GPUs; of each the newest
/// on which it works, else the newest, and every other machine that found the same.
pub fn seen(all: &[Evidence], platform: &str, route: Route) -> Option<Seen> {
    best(all, platform, |evidence| evidence.of("route", route.name()))
}

/// What is known of a carrier, in the same way.
pub fn seen_to_carry(all: &[Evidence], platform: &str, carrier: Carrier) -> Option<Seen> {
    best(all, platform, |evidence| evidence.of("carrier", carrier.name()))
}

fn best(all: &[Evidence], platform: &str, of: impl Fn(&Evidence) -> Option<Seen>) -> Option<Seen> {
    let told: Vec<Seen> = all
        .iter()
        .filter(|evidence| evidence.platform == platform)
        .filter_map(of)
        .collect();
    let grade = told.iter().map(|seen| seen.grade).max()?;
    let told: Vec<Seen> = told.into_iter().filter(|seen| seen.grade == grade).collect();
    let first = told.iter().find(|seen| seen.works).or(told.first())?;
    let alike = told
        .iter()
        .filter(|seen| (seen.works, &seen.state) == (first.works, &first.state));
    let places: Vec<&str> = alike.map(|seen| &*seen.place).collect();
    Some(Seen {
        place: places.join("; "),
        ..first.clone()
    })
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
        let carriers = report["carriers"].as_array().cloned().unwrap_or_default();
        let opencl = report["opencl_devices"].as_array();
        let driver = opencl
            .into_iter()
            .flatten()
            .find(|device| device["name"] == report["pair"]["opencl"])
            .and_then(|device| device["driver"].as_str())
            .ok_or("no driver of the pair's OpenCL device")?;
        let day = taken.split('T').next().unwrap_or_default();
        let (grade, place) = match report["emulator"].as_str() {
            None => (Grade::Real, format!("{card}, driver {driver}, {day}")),
            Some(emulator) => {
                let hip = text(&report["hip_file"], "file of HIP's library")?;
                let arch = text(&report["arch"], "architecture")?;
                let place = format!("{hip} on {emulator}'s {arch}, an emulated GPU, {day}");
                (Grade::Emulated, place)
            }
        };
        Ok(Self {
            grade,
            place,
            platform,
            taken,
            routes,
            carriers,
        })
    }

    /// What was told of the route or carrier with this name.
    fn of(&self, kind: &str, name: &str) -> Option<Seen> {
        let mut all = self.routes.iter().chain(&self.carriers);
        let told = all.find(|told| told[kind] == name)?;
        let place = self.place.clone();
        if told["works"] == true {
            let state = match told["residency"].as_str() {
                None | Some("unknown") => "works, place unknown".to_owned(),
                Some(residency) => residency.to_owned(),
            };
            return Some(Seen {
                grade: self.grade,
                works: true,
                state,
                reason: None,
                place,
            });
        }
        let reason = told["reason"].as_str().unwrap_or("no reason was told");
        // addresses differ from run to run, the last clause does not
        let clause = reason.rsplit(": ").next().unwrap_or(reason);
        let state = match told["impossible"] == true {
            true => "not possible",
            false => "fails",
        };
        Some(Seen {
            grade: self.grade,
            works: false,
            state: state.to_owned(),
            reason: Some(clause.to_owned()),
            place,
        })
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
    let of = |all: &[Evidence], platform| seen(all, platform, Route::SvmCoarse);
    let works = of(&newest_first, "amd").expect("evidence");
    assert_eq!((works.works, &*works.state), (true, "vram"));
    assert_eq!(works.place, "Card, driver 9.1, 2026-01-02");
    let fails = of(&newest_first[..1], "amd").expect("evidence");
    assert_eq!((fails.works, &*fails.state), (false, "fails"));
    assert_eq!(fails.reason.as_deref(), Some("no memory"));
    assert_eq!(fails.place, "Card, driver 9.1, 2026-03-01");
    assert_eq!(of(&newest_first, "nvidia"), None);
    assert_eq!(seen(&newest_first, "amd", Route::Managed), None);
}

#[test]
fn an_emulated_gpu_counts_where_no_hardware_was_seen() {
    let emulated = |taken, routes| {
        let text = report("amd", taken, routes).replacen(
            '{',
            "{\"emulator\":\"rocjitsu\",\"hip_file\":\"libamdhip64.so.7.2\",\"arch\":\"gfx908\",",
            1,
        );
        Evidence::read(&text).expect("evidence")
    };
    let of = |all: &[Evidence]| seen(all, "amd", Route::SvmCoarse).expect("evidence");
    let alone = of(&[emulated("2026-05-01T00:00:00Z", FAILS), emulated("2026-04-01", WORKS)]);
    assert_eq!((alone.grade, alone.works), (Grade::Emulated, true));
    assert_eq!(
        alone.place,
        "libamdhip64.so.7.2 on rocjitsu's gfx908, an emulated GPU, 2026-04-01"
    );
    let two = of(&[
        emulated("2026-05-01", WORKS),
        emulated("2026-04-01", WORKS),
        emulated("2026-03-01", FAILS),
    ]);
    assert_eq!(
        two.place,
        "libamdhip64.so.7.2 on rocjitsu's gfx908, an emulated GPU, 2026-05-01; \
         libamdhip64.so.7.2 on rocjitsu's gfx908, an emulated GPU, 2026-04-01"
    );
    let real = Evidence::read(&report("amd", "2026-03-01", FAILS)).expect("evidence");
    let both = of(&[emulated("2026-05-01", WORKS), real]);
    assert_eq!((both.grade, both.works), (Grade::Real, false));
    let nameless = report("amd", "2026", WORKS).replacen('{', "{\"emulator\":\"rocjitsu\",", 1);
    assert!(
        Evidence::read(&nameless)
            .expect_err("refused")
            .contains("HIP's library")
    );
}

#[test]
fn a_carrier_is_known_from_reports_that_tried_it() {
    let with = |taken, carriers| {
        let text = report("amd", taken, WORKS).replacen('{', &format!("{{\"carriers\":[{carriers}],"), 1);
        Evidence::read(&text).expect("evidence")
    };
    let works = "{\"carrier\":\"dma-buf\",\"works\":true,\"residency\":\"vram\"}";
    let silent = Evidence::read(&report("amd", "2026-03-01", WORKS)).expect("evidence");
    let all = [silent, with("2026-02-01", works)];
    let seen = |carrier| seen_to_carry(&all, "amd", carrier);
    let told = seen(Carrier::DmaBuf).expect("evidence");
    assert_eq!((told.works, &*told.state), (true, "vram"));
    assert!(told.place.ends_with("2026-02-01"), "{}", told.place);
    assert_eq!(seen(Carrier::HipFd), None);
}

#[test]
fn a_route_of_unknown_place_works_all_the_same() {
    let unknown = WORKS.replace("vram", "unknown");
    let all = [Evidence::read(&report("amd", "2026", &unknown)).expect("evidence")];
    let told = seen(&all, "amd", Route::SvmCoarse).expect("evidence");
    assert_eq!((told.works, &*told.state), (true, "works, place unknown"));
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
