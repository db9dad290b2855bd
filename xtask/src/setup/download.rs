//! Downloads files over HTTPS with the system's certificates, through the proxy from the environment. Checks
//! digests and shows progress.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use ureq::tls::{PemItem, RootCerts, TlsConfig};
use ureq::{Agent, Proxy};

use super::pip::Settings;

/// The time limit for connecting, for the start of the answer, and between two parts of it.
const PATIENCE: Duration = Duration::from_secs(60);
/// A broken connection is retried.
const ATTEMPTS: u32 = 3;
/// The size limit for an index page, which is only a list of files. In bytes.
const LARGEST_PAGE: u64 = 64 << 20;

/// An HTTP client.
pub struct Client(Agent);

/// A file whose content is known in advance.
pub struct Wanted<'a> {
    /// Its file name.
    pub name: &'a str,
    /// Its length in bytes.
    pub bytes: u64,
    /// The SHA-256 digest of its content, in lower-case hexadecimal.
    pub sha256: &'a str,
}

impl Client {
    /// A client with these certificates and this proxy, or with those of the system and the environment.
    ///
    /// # Errors
    /// If the named certificates or the named proxy cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let certificates = match &settings.certificates {
            Some(file) => read_certificates(file)?,
            None => RootCerts::PlatformVerifier,
        };
        let proxy = match &settings.proxy {
            Some(address) => {
                Some(Proxy::new(address).map_err(|error| format!("the proxy of pip's configuration: {error}"))?)
            }
            None => Proxy::try_from_env(),
        };
        let config = Agent::config_builder()
            .tls_config(TlsConfig::builder().root_certs(certificates).build())
            .proxy(proxy)
            .timeout_resolve(Some(PATIENCE))
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .build();
        Ok(Self(config.new_agent()))
    }

    /// The text at this address and its media type; `None` if the server has no such page.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses, with its host name.
    pub fn page(&self, address: &str, accept: &str) -> Result<Option<(String, String)>, String> {
        retried(|| {
            let answer = self.0.get(address).header("Accept", accept).call();
            let mut answer = match answer {
                Err(ureq::Error::StatusCode(404)) => return Ok(None),
                answer => answer.map_err(|error| Failure::of(address, &error))?,
            };
            let media_type = answer.body().mime_type().unwrap_or("text/html").to_owned();
            let body = answer.body_mut().with_config().limit(LARGEST_PAGE);
            let text = body.read_to_string().map_err(|error| Failure::of(address, &error))?;
            Ok(Some((media_type, text)))
        })
    }

    /// Downloads this address to `path`. Afterwards the file is complete and correct, or does not exist.
    ///
    /// # Errors
    /// If the download fails, the file cannot be written, or the content differs from the expected content.
    pub fn file(&self, address: &str, wanted: &Wanted<'_>, path: &Path) -> Result<(), String> {
        let fetched = retried(|| {
            let answer = self.0.get(address).call();
            let answer = answer.map_err(|error| Failure::of(address, &error))?;
            // A little more than expected is enough to detect another file.
            let body = answer.into_body().into_with_config().limit(wanted.bytes + 1);
            store(body.reader(), wanted, path).map_err(|failure| failure.at(address))
        });
        if fetched.is_err() {
            // Report the first error; the next run clears the folder in any case.
            let _ = std::fs::remove_file(path);
        }
        fetched
    }
}

/// Copies a local file, with the same check.
///
/// # Errors
/// As for [`Client::file`].
pub fn copy(from: &Path, wanted: &Wanted<'_>, path: &Path) -> Result<(), String> {
    let file = File::open(from).map_err(|error| format!("{}: {error}", from.display()))?;
    store(file, wanted, path).map_err(|failure| format!("{}: {}", from.display(), failure.reason))
}

/// Why an attempt failed, and whether a retry may succeed.
struct Failure {
    reason: String,
    may_pass: bool,
}

impl Failure {
    fn of(address: &str, error: &ureq::Error) -> Self {
        use ureq::Error;
        let (remedy, may_pass) = match error {
            Error::HostNotFound => ("check the network, or set HTTPS_PROXY to a proxy", true),
            Error::StatusCode(407) => ("add the user and password of the proxy to HTTPS_PROXY", false),
            Error::StatusCode(401 | 403) => ("add the user and password to PIP_INDEX_URL", false),
            Error::StatusCode(code) => ("try again later", *code >= 500 || *code == 429),
            Error::Rustls(_) | Error::Tls(_) | Error::Pem(_) => (
                "install the certificates (Debian, Ubuntu: `apt install ca-certificates`), or set SSL_CERT_FILE to yours",
                false,
            ),
            _ => ("try again, or set HTTPS_PROXY to a proxy", true),
        };
        Self {
            reason: format!("{error}; {remedy}"),
            may_pass,
        }
        .at(address)
    }

    /// Shows only the host, because the rest of the address may contain a password.
    fn at(self, address: &str) -> Self {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or(rest);
        let host = authority.rsplit('@').next().unwrap_or(authority);
        Self {
            reason: format!("{host}: {}", self.reason),
            ..self
        }
    }
}

fn retried<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, String> {
    let mut count = 1;
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(failure) if failure.may_pass && count < ATTEMPTS => {
                println!("OpenCL: {}; trying again", failure.reason);
                count += 1;
            }
            Err(failure) => return Err(failure.reason),
        }
    }
}

/// Writes what is read, and checks its length and digest.
fn store(mut from: impl Read, wanted: &Wanted<'_>, path: &Path) -> Result<(), Failure> {
    let broken = |error: std::io::Error| Failure {
        reason: format!("the download of {} failed: {error}", wanted.name),
        may_pass: true,
    };
    let on_disk = |error: std::io::Error| Failure {
        reason: format!("cannot write {}: {error}", path.display()),
        may_pass: false,
    };
    let mut file = File::create(path).map_err(on_disk)?;
    let progress = progress(wanted);
    let mut digest = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        let read = from.read(&mut piece).map_err(broken)?;
        if read == 0 {
            break;
        }
        file.write_all(&piece[..read]).map_err(on_disk)?;
        digest.update(&piece[..read]);
        bytes += read as u64;
        progress.set_position(bytes);
    }
    progress.finish_and_clear();
    if bytes < wanted.bytes {
        let short = format!("received {bytes} of {} bytes", wanted.bytes);
        return Err(broken(std::io::Error::other(short)));
    }
    let found: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found != wanted.sha256 {
        return Err(Failure {
            reason: format!(
                "{} is not the expected file (SHA-256 {found}, expected {})",
                wanted.name, wanted.sha256
            ),
            may_pass: false,
        });
    }
    Ok(())
}

/// A bar on a terminal; one line elsewhere.
fn progress(wanted: &Wanted<'_>) -> ProgressBar {
    let bar = ProgressBar::new(wanted.bytes);
    if bar.is_hidden() {
        println!("OpenCL: {} ({} MB)", wanted.name, wanted.bytes.div_ceil(1_000_000));
    }
    let template = "{msg} {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let project = wanted.name.split('-').next().unwrap_or(wanted.name);
    bar.with_message(project.to_owned())
}

fn read_certificates(file: &Path) -> Result<RootCerts, String> {
    let place = || format!("the certificates {}", file.display());
    let text = std::fs::read(file).map_err(|error| format!("{}: {error}", place()))?;
    let mut certificates = Vec::new();
    for item in ureq::tls::parse_pem(&text) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("{}: {error}", place())),
        }
    }
    match certificates.is_empty() {
        true => Err(format!("{}: holds none", place())),
        false => Ok(RootCerts::new_with_certs(&certificates)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    const CONTENT: &str = "what is wanted";

    fn wanted() -> Wanted<'static> {
        Wanted {
            name: "tool-1.0.whl",
            bytes: CONTENT.len() as u64,
            sha256: "8ee6efd77a5d7a9cf1a7d1e4c9b1bb4d7b0f4b2f5b8c5f9cf5f3b4b5f3c8a111",
        }
    }

    fn digest(text: &str) -> String {
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A local server that gives each connection the next of these answers; it returns the request lines.
    fn server(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let serve = |answer: String| {
                let (mut connection, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
                let first = lines.next().unwrap().unwrap();
                lines.take_while(|line| !line.as_ref().unwrap().is_empty()).count();
                connection.write_all(answer.as_bytes()).unwrap();
                first
            };
            answers.into_iter().map(serve).collect()
        });
        (address, thread)
    }

    fn answer(status: &str, length: usize, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    }

    fn client() -> Client {
        Client::new(&Settings::default()).unwrap()
    }

    #[test]
    fn a_missing_page_is_not_an_error() {
        let (address, server) = server(vec![answer("404 Not Found", 0, "")]);
        assert_eq!(client().page(&format!("{address}/simple/tool/"), "text/html"), Ok(None));
        assert_eq!(server.join().unwrap(), ["GET /simple/tool/ HTTP/1.1"]);
    }

    #[test]
    fn a_broken_connection_is_retried() {
        let sha256 = digest(CONTENT);
        let half = answer("200 OK", CONTENT.len(), &CONTENT[..4]);
        let (address, server) = server(vec![half, answer("200 OK", CONTENT.len(), CONTENT)]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool.whl");
        let wanted = Wanted {
            sha256: &sha256,
            ..wanted()
        };
        client().file(&format!("{address}/f"), &wanted, &path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), CONTENT);
        assert_eq!(server.join().unwrap().len(), 2);
    }

    #[test]
    fn a_file_other_than_the_chosen_one_is_not_kept() {
        for body in ["what is planted", "another string"] {
            let (address, server) = server(vec![answer("200 OK", body.len(), body)]);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("tool.whl");
            let reason = client().file(&format!("{address}/f"), &wanted(), &path).unwrap_err();
            assert!(
                reason.contains("not the expected file") && !reason.contains('\n'),
                "{reason}"
            );
            assert!(!path.exists());
            server.join().unwrap();
        }
    }

    #[test]
    fn a_refusal_is_reported_without_the_password() {
        let (address, server) = server(vec![answer("403 Forbidden", 0, "")]);
        let secret = address.replace("://", "://me:secret@");
        let reason = client().page(&format!("{secret}/simple"), "text/html").unwrap_err();
        assert!(reason.starts_with("127.0.0.1:") && reason.contains("403"), "{reason}");
        assert!(!reason.contains("secret"), "{reason}");
        server.join().unwrap();
    }

    #[test]
    fn the_configured_proxy_is_used() {
        let (address, server) = server(vec![answer("403 Forbidden", 0, "")]);
        let settings = Settings {
            proxy: Some(address),
            ..Settings::default()
        };
        let client = Client::new(&settings).unwrap();
        // No host has this name, so any answer is the proxy's.
        let page = client.page("http://mirror.invalid/simple", "text/html");
        assert!(page.is_err(), "{page:?}");
        assert_eq!(server.join().unwrap(), ["CONNECT mirror.invalid:80 HTTP/1.1"]);
    }

    #[test]
    fn invalid_certificates_are_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let settings = Settings {
            certificates: Some(file.path().into()),
            ..Settings::default()
        };
        let reason = Client::new(&settings).err().unwrap();
        assert!(reason.contains(file.path().to_str().unwrap()), "{reason}");
    }

    #[test]
    fn a_copy_is_checked_like_a_download() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, CONTENT).unwrap();
        let sha256 = digest(CONTENT);
        copy(
            &from,
            &Wanted {
                sha256: &sha256,
                ..wanted()
            },
            &to,
        )
        .unwrap();
        assert!(copy(&from, &wanted(), &to).is_err());
    }
}
