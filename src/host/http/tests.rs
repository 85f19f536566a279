//! The client against a real server that does wrong in every way it can.

#[path = "../../../tests/support/http.rs"]
#[allow(dead_code, reason = "tests of the whole program use more of it")]
mod server;

use std::{
    fs,
    io::{Read, Write},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use server::{Identity, Manner, Reply, Server};

use super::*;
use crate::signals::{send, turn};

const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog.";

struct Nobody;

impl ProgressListener for Nobody {
    fn received(&self, _: &Url, _: u64, _: Option<u64>) {}
    fn ended(&self) {}
}

fn client() -> Client {
    Client::new(Proxies::default(), Interrupt::never().unwrap(), Arc::new(Nobody))
}

fn fetch(client: &Client, url: &str) -> Result<Vec<u8>, HttpError> {
    client.fetch_small(&Request::of(&Url::parse(url).unwrap()), 1 << 20)
}

#[track_caller]
fn failure(server: &Server) -> HttpError {
    fetch(&client(), &server.url("/x")).expect_err("it must not be accepted")
}

/// A temporary file, removed afterwards.
struct CaFile(PathBuf);

impl CaFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ccm-ca-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for CaFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_body_arrives_whole_however_it_is_framed() {
    let large: Arc<Vec<u8>> =
        Arc::new((0..700_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect());
    for manner in [Manner::Whole, Manner::Chunked, Manner::Unmeasured] {
        let body = Arc::clone(&large);
        let server = Server::start(move |_| Reply::body(Arc::clone(&body)).manner(manner));
        assert!(fetch(&client(), &server.url("/x")).unwrap() == *large, "{manner:?}");
        assert!(matches!(
            client().fetch_small(&Request::of(&Url::parse(&server.url("/x")).unwrap()), 1000),
            Err(HttpError::TooLarge { limit: 1000, .. })
        ));
    }
    let request = &Server::of(TEXT.to_vec());
    fetch(&client(), &request.url("/a%20b?c=d")).unwrap();
    let asked = &request.requests()[0];
    assert_eq!(asked.line, "GET /a%20b?c=d HTTP/1.1");
    assert_eq!(asked.header("accept-encoding"), Some("identity"));
}

#[test]
fn a_body_that_is_not_what_was_announced_is_a_failure() {
    let cut = |manner| Server::start(move |_| Reply::body(TEXT.to_vec()).manner(manner));
    for (manner, received) in [(Manner::Cut(10), 10), (Manner::Claiming(100), 44), (Manner::Cut(0), 0)] {
        match failure(&cut(manner)) {
            HttpError::Truncated { received: count, expected: Some(_), .. } => assert_eq!(count, received),
            other => panic!("{manner:?}: {other:?}"),
        }
    }
    assert!(failure(&cut(Manner::Silent)).is_passing());
    let encoded = Server::start(|_| Reply::body(TEXT.to_vec()).header("Content-Encoding", "gzip"));
    assert!(matches!(failure(&encoded), HttpError::Protocol { .. }));
}

#[test]
fn statuses_are_failures_and_only_some_pass() {
    for (status, passing) in [
        (401, false),
        (403, false),
        (404, false),
        (408, true),
        (429, true),
        (500, true),
        (503, true),
        (206, false),
        (304, false),
    ] {
        let server = Server::start(move |_| Reply::status(status));
        let error = failure(&server);
        assert!(matches!(&error, HttpError::Status { status: found, .. } if *found == status), "{error:?}");
        assert_eq!(error.is_passing(), passing, "{status}");
        assert!(error.to_string().starts_with(&format!("{} answered {status}", server.url("/x"))), "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    // No process listens there, and the kernel gives this port to no one.
    let error = fetch(&client(), "http://127.0.0.1:1/x").unwrap_err();
    assert!(
        matches!(error, HttpError::Unreachable { .. }) && error.to_string().contains("refused"),
        "{error:?}"
    );
    assert!(error.is_passing());
    let unknown = fetch(&client(), "http://no-such-host.invalid/x").unwrap_err();
    assert!(matches!(unknown, HttpError::Unreachable { .. }), "{unknown:?}");
}

#[test]
fn silence_is_not_waited_out() {
    for manner in [Manner::Stall(0), Manner::Stall(10)] {
        let server = Server::start(move |_| Reply::body(TEXT.to_vec()).manner(manner));
        let client = Client { stall: Duration::from_millis(200), ..client() };
        let error = fetch(&client, &server.url("/x")).unwrap_err();
        assert!(matches!(error, HttpError::Stalled { .. }), "{error:?}");
        assert!(error.is_passing());
    }
}

#[test]
fn the_deadline_ends_a_transfer_that_goes_on() {
    let server = Server::start(|_| Reply::body(TEXT.to_vec()).manner(Manner::Stall(10)));
    let url = Url::parse(&server.url("/x")).unwrap();
    let request =
        Request { deadline: Some(Instant::now() + Duration::from_millis(200)), ..Request::of(&url) };
    assert!(matches!(client().fetch_small(&request, 100), Err(HttpError::TimeUp { .. })));
}

#[test]
fn a_signal_ends_a_transfer_that_is_waited_for() {
    let _turn = turn();
    let server = Arc::new(Server::start(|_| Reply::body(TEXT.to_vec()).manner(Manner::Stall(10))));
    let client = Client::new(Proxies::default(), Interrupt::install().unwrap(), Arc::new(Nobody));
    // Longer than a test may take: only the signal ends it.
    let client = Client { stall: Duration::from_hours(1), ..client };
    let watched = Arc::clone(&server);
    let signaller = std::thread::spawn(move || {
        while watched.requests().is_empty() {
            std::thread::yield_now();
        }
        send(crate::host::interrupt::Signal::Terminate.number());
    });
    let error = fetch(&client, &server.url("/x")).unwrap_err();
    assert!(matches!(error, HttpError::Interrupted), "{error:?}");
    signaller.join().unwrap();
}

#[test]
fn redirects_are_followed_on_the_same_server_with_what_was_meant_for_it() {
    let server = Server::start(|request| match request.path.as_str() {
        "/a" => Reply::redirect("/b"),
        "/b" => Reply::redirect("c"),
        _ => Reply::body(TEXT.to_vec()),
    });
    let url = Url::parse(&server.url_with("me:pass", "/a")).unwrap();
    let headers = [("X-Token".to_owned(), Secret::new("t0ken"))];
    let request = Request { headers: &headers, ..Request::of(&url) };
    assert_eq!(client().fetch_small(&request, 100).unwrap(), TEXT);
    let asked = server.requests();
    assert_eq!(asked.iter().map(|request| request.path.as_str()).collect::<Vec<_>>(), ["/a", "/b", "/c"]);
    for request in asked {
        assert_eq!(request.header("authorization"), Some("Basic bWU6cGFzcw=="));
        assert_eq!(request.header("x-token"), Some("t0ken"));
    }
}

#[test]
fn another_server_is_told_nothing_even_on_the_way_back() {
    let home = Arc::new(Server::start(|request| match request.path.as_str() {
        "/start" => Reply::redirect(request.header("x-next").unwrap()),
        _ => Reply::body(TEXT.to_vec()),
    }));
    let back = home.url("/end");
    let other = Server::start(move |_| Reply::redirect(&back));
    // The same machine and the same port by another name are another server too.
    for next in [other.url("/x"), home.url_by_name("/end")] {
        let url = Url::parse(&home.url_with("me:pass", "/start")).unwrap();
        let headers = [
            ("X-Next".to_owned(), Secret::new(next.as_str())),
            ("Authorization".to_owned(), Secret::new("Bearer t")),
        ];
        let login = Login { user: Secret::new("you"), password: Secret::new("word") };
        let request = Request { headers: &headers, login: Some(&login), ..Request::of(&url) };
        assert_eq!(client().fetch_small(&request, 100).unwrap(), TEXT);
        let last = home.requests().pop().unwrap();
        for request in other.requests().iter().chain([&last]) {
            assert_eq!((request.header("authorization"), request.header("x-next")), (None, None), "{next}");
        }
    }
    assert_eq!(home.requests()[0].header("authorization"), Some("Bearer t"), "a header of one's own wins");
}

#[test]
fn redirects_that_lead_nowhere_are_refused() {
    for (location, wanted) in [
        ("/again", "redirects more than 10 times"),
        ("ftp://h/x", "only http and https"),
        ("http://", "no usable host"),
    ] {
        let server = Server::start(move |_| Reply::redirect(location));
        let error = failure(&server);
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(!error.is_passing());
        assert!(server.requests().len() <= 11);
    }
    assert!(failure(&Server::start(|_| Reply::status(302))).to_string().contains("does not say where"));
}

#[test]
fn only_certificates_that_are_trusted_valid_and_for_the_host_are_accepted() {
    let good = Identity::of("127.0.0.1");
    let answer = |_: &server::Request| Reply::body(TEXT.to_vec());
    for (name, identity, trusted, wanted) in [
        ("good", &good, true, Ok(TEXT)),
        ("unknown", &good, false, Err("is self-signed")),
        ("expired", &Identity::expired("127.0.0.1"), true, Err("has expired")),
        ("other", &Identity::of("example.com"), true, Err("another host")),
        ("authority", &Identity::of_authority("127.0.0.1"), true, Ok(TEXT)),
        ("unknown authority", &Identity::of_authority("127.0.0.1"), false, Err("is self-signed")),
        ("expired authority", &Identity::of_expired_authority("127.0.0.1"), true, Err("has expired")),
        ("other authority", &Identity::of_authority("example.com"), true, Err("another host")),
    ] {
        let server = Server::secure(identity, answer);
        let url = Url::parse(&server.url("/x")).unwrap();
        let file = CaFile::new(name, &identity.pem());
        let request = Request { ca_file: trusted.then_some(file.0.as_path()), ..Request::of(&url) };
        match (client().fetch_small(&request, 100), wanted) {
            (Ok(found), Ok(wanted)) => assert_eq!(found, wanted),
            (Err(error @ HttpError::Tls { .. }), Err(wanted)) => {
                assert!(error.to_string().contains(wanted), "{error}");
                assert!(!error.is_passing());
                let helps = wanted.contains("self-signed");
                assert_eq!(error.hint().unwrap().contains("ca_file"), helps, "{error}");
                assert!(server.requests().is_empty(), "nothing is told to a server that is not trusted");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
    let url = Url::parse("https://127.0.0.1:1/x").unwrap();
    for (name, text, wanted) in [
        ("none", "hello\n", "no certificate"),
        ("broken", "-----BEGIN CERTIFICATE-----\n%\n-----END CERTIFICATE-----\n", "not in PEM"),
    ] {
        let file = CaFile::new(name, text);
        let error =
            client().fetch_small(&Request { ca_file: Some(&file.0), ..Request::of(&url) }, 1).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn what_was_asked_for_over_https_is_not_fetched_over_http() {
    let plain = Server::of(TEXT.to_vec());
    let target = plain.url("/x");
    let identity = Identity::of("127.0.0.1");
    let server = Server::secure(&identity, move |_| Reply::redirect(&target));
    let file = CaFile::new("downgrade", &identity.pem());
    let url = Url::parse(&server.url("/x")).unwrap();
    let error =
        client().fetch_small(&Request { ca_file: Some(&file.0), ..Request::of(&url) }, 100).unwrap_err();
    assert!(matches!(error, HttpError::Downgrade { .. }), "{error:?}");
    assert!(plain.requests().is_empty());
}

#[test]
fn a_broken_transfer_is_taken_up_where_it_ended_or_begun_anew() {
    let server = Server::start(|request| Reply::body(TEXT.to_vec()).resumable(request, "\"v2\""));
    let url = Url::parse(&server.url("/x")).unwrap();
    let get = |version: &str| {
        let part = Part { length: 10, version: version.to_owned(), total: Some(44) };
        let mut body = client().get(&Request { part: Some(&part), ..Request::of(&url) }).unwrap();
        let (start, total) = (body.start(), body.total());
        let mut buffer = [0; 100];
        let count = body.next(&mut buffer).unwrap();
        (start, total, buffer[..count].to_vec(), body.version().map(str::to_owned))
    };
    let version = Some("\"v2\"".to_owned());
    assert_eq!(get("\"v2\""), (10, Some(44), TEXT[10..].to_vec(), version.clone()));
    assert_eq!(get("\"v1\""), (0, Some(44), TEXT.to_vec(), version));
}

#[test]
fn a_server_that_sends_another_part_is_not_believed() {
    for range in ["bytes 5-43/44", "bytes */44", "lines 10-43/44"] {
        let server = Server::start(move |_| {
            let reply = Reply::body(TEXT[10..].to_vec()).header("Content-Range", range);
            reply.with_status(206)
        });
        let url = Url::parse(&server.url("/x")).unwrap();
        let part = Part { length: 10, version: "\"v\"".to_owned(), total: None };
        let answer = client().get(&Request { part: Some(&part), ..Request::of(&url) });
        assert!(matches!(answer, Err(HttpError::WrongRange { .. })), "{range}");
    }
}

#[test]
fn a_server_that_goes_on_with_another_version_is_not_believed() {
    let version = |part: &str| if part.starts_with('"') { "ETag" } else { "Last-Modified" };
    for (part, name, value, total, believed) in [
        ("\"v\"", "ETag", "\"v\"", "44", true),
        ("\"v\"", "ETag", "\"w\"", "44", false),
        ("\"v\"", "ETag", "\"v\"", "45", false),
        ("\"v\"", "ETag", "\"v\"", "*", true),
        ("\"v\"", "X", "y", "44", true),
        ("\"v\"", "Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT", "44", true),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "Last-Modified", "Mon, 07 Nov 1994 08:49:37 GMT", "44", false),
    ] {
        let range = format!("bytes 10-43/{total}");
        let server = Server::start(move |_| {
            let reply = Reply::body(TEXT[10..].to_vec()).with_status(206).header(name, value);
            reply.header("Content-Range", &range)
        });
        let url = Url::parse(&server.url("/x")).unwrap();
        let kept = Part { length: 10, version: part.to_owned(), total: Some(44) };
        let answer = client().get(&Request { part: Some(&kept), ..Request::of(&url) });
        match answer {
            Ok(body) => {
                assert!(believed, "{part} {name} {value} {total}");
                assert_eq!(body.version(), Some(part), "{}", version(part));
            }
            Err(error) => assert!(!believed && matches!(error, HttpError::WrongRange { .. }), "{error}"),
        }
    }
}

#[test]
fn less_or_more_than_the_rest_of_a_file_is_not_its_end() {
    for (body, wanted) in
        [(&TEXT[10..30], "ended after 30 bytes of 44"), (TEXT, "it sent more of the file than there is")]
    {
        let server = Server::start(move |_| {
            let reply = Reply::body(body.to_vec()).with_status(206).manner(Manner::Chunked);
            reply.header("Content-Range", "bytes 10-29/44")
        });
        let url = Url::parse(&server.url("/x")).unwrap();
        let part = Part { length: 10, version: "\"v\"".to_owned(), total: None };
        let error =
            client().fetch_small(&Request { part: Some(&part), ..Request::of(&url) }, 100).unwrap_err();
        assert!(error.to_string().contains(wanted) && error.is_passing(), "{error}");
    }
}

#[test]
fn weak_tags_and_servers_without_ranges_allow_no_resumption() {
    for (name, value, version) in [
        ("ETag", "W/\"x\"", None),
        ("ETag", "\"x\"", Some("\"x\"")),
        ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT", Some("Sun, 06 Nov 1994 08:49:37 GMT")),
        ("X", "y", None),
    ] {
        let server = Server::start(move |_| Reply::body(TEXT.to_vec()).header(name, value));
        let url = Url::parse(&server.url("/x")).unwrap();
        assert_eq!(client().get(&Request::of(&url)).unwrap().version(), version, "{value}");
        let none = Server::start(move |_| {
            Reply::body(TEXT.to_vec()).header(name, value).header("Accept-Ranges", "none")
        });
        let url = Url::parse(&none.url("/x")).unwrap();
        assert_eq!(client().get(&Request::of(&url)).unwrap().version(), None);
    }
}

fn client_of_proxy(address: &str) -> Client {
    let proxies = Proxies::from_environment(|name| (name == "all_proxy").then(|| address.to_owned()));
    Client::new(proxies, Interrupt::never().unwrap(), Arc::new(Nobody))
}

#[test]
fn a_tunnel_is_opened_to_servers_that_speak_https_with_the_proxys_own_password() {
    let proxy = Server::start(|_| Reply::status(407));
    let client = client_of_proxy(&proxy.url_with("pro:xy", ""));
    let error = fetch(&client, "https://user:word@server.invalid/x").unwrap_err();
    assert!(error.to_string().contains("it answered 407 (Proxy Authentication Required)"), "{error}");
    assert!(error.to_string().contains(&format!("through the proxy {}", proxy.url(""))), "{error}");
    assert!(error.hint().unwrap().contains("user and password"));
    let text = format!("{error} {error:?}");
    assert!(!text.contains("word") && !text.contains("pro:xy"), "{text}");
    let asked = &proxy.requests()[0];
    assert_eq!(asked.line, "CONNECT server.invalid:443 HTTP/1.1");
    assert_eq!(asked.header("proxy-authorization"), Some("Basic cHJvOnh5"));
    assert_eq!(asked.header("authorization"), None);
}

#[test]
fn what_is_served_over_http_the_proxy_itself_is_asked_for() {
    let identity = Identity::of("127.0.0.1");
    let file = CaFile::new("proxy", &identity.pem());
    for proxy in [Server::of(TEXT.to_vec()), Server::secure(&identity, |_| Reply::body(TEXT.to_vec()))] {
        let client = client_of_proxy(&proxy.url_with("pro:xy", ""));
        for (url, line) in [
            ("http://user:word@server.invalid/a/x?y=/z", "GET http://server.invalid/a/x?y=/z HTTP/1.1"),
            ("http://server.invalid:81", "GET http://server.invalid:81/ HTTP/1.1"),
        ] {
            let url = Url::parse(url).unwrap();
            let request = Request { ca_file: Some(&file.0), ..Request::of(&url) };
            assert_eq!(client.fetch_small(&request, 100).unwrap(), TEXT);
            let asked = proxy.requests().pop().unwrap();
            assert_eq!(asked.line, line);
            assert_eq!(asked.header("proxy-authorization"), Some("Basic cHJvOnh5"));
            assert_eq!(asked.header("host"), line.split('/').nth(2));
            assert_eq!(asked.header("authorization").is_some(), url.login().is_some());
        }
    }
}

#[test]
fn a_proxy_that_cannot_be_reached_is_named_without_its_password() {
    for address in ["http://pro:xy@127.0.0.1:1", "pro:xy@127.0.0.1:1"] {
        for url in ["http://server.invalid/x", "https://server.invalid/x"] {
            let error = fetch(&client_of_proxy(address), url).unwrap_err();
            let wanted = format!("cannot reach {url} through the proxy http://127.0.0.1:1: the connection");
            assert!(error.to_string().starts_with(&wanted), "{error}");
            assert!(error.is_passing() && !format!("{error:?}").contains("xy@"), "{error:?}");
        }
    }
    let error = fetch(&client_of_proxy("http://no-such-proxy.invalid:3128"), "http://h/x").unwrap_err();
    assert!(error.to_string().contains("through the proxy http://no-such-proxy.invalid:3128: "), "{error}");
    let error = fetch(&client_of_proxy("ftp://pro:xy@p"), "http://h/x").unwrap_err();
    assert!(matches!(error, HttpError::NoProxy { .. }) && !error.is_passing(), "{error:?}");
}

#[test]
fn a_server_that_does_not_speak_https_is_told_so() {
    for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", ""] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}/x", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.read_exact(&mut [0; 5]).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = fetch(&client(), &url).unwrap_err();
        let (wanted, hint) = match answer {
            "" => ("it hung up instead of speaking TLS", None),
            _ => ("it does not speak TLS", Some("begin the URL with http://")),
        };
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!(error.hint().map(|hint| &hint[..26]), hint, "{error}");
        server.join().unwrap();
    }
}

#[test]
fn headers_that_cannot_be_sent_are_named_without_their_value() {
    let server = Server::of(Vec::new());
    let url = Url::parse(&server.url("/x")).unwrap();
    let long = "canary".repeat(20_000);
    for (name, value, wanted) in [
        ("X-Token", "canary\r\nX-Evil: 1", "holds a line break"),
        ("X-Token", long.as_str(), "is longer than"),
        ("X Token", "canary", "is not the name of a header"),
        ("Content-Length", "5", "cannot be given"),
        ("transfer-encoding", "chunked", "cannot be given"),
        ("RANGE", "bytes=5-", "cannot be given"),
    ] {
        let headers = [(name.to_owned(), Secret::new(value))];
        let error = client().fetch_small(&Request { headers: &headers, ..Request::of(&url) }, 1).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("{name:?}")) && text.contains(wanted), "{error}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_host_of_ones_own_takes_the_place_of_the_addresss() {
    let server = Server::of(TEXT.to_vec());
    let url = Url::parse(&server.url("/x")).unwrap();
    let headers = [("Host".to_owned(), Secret::new("virtual.example"))];
    client().fetch_small(&Request { headers: &headers, ..Request::of(&url) }, 100).unwrap();
    assert_eq!(server.requests()[0].header("host"), Some("virtual.example"));
}

#[test]
fn base_64_is_as_others_write_it() {
    for (plain, encoded) in
        [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("\u{ff}", "w78=")]
    {
        assert_eq!(base64(plain.as_bytes()), encoded);
    }
}

#[test]
fn a_body_without_a_length_is_whole_only_if_the_server_closed_the_connection_itself() {
    let identity = Identity::of("127.0.0.1");
    let file = CaFile::new("severed", &identity.pem());
    for (manner, is_whole) in
        [(Manner::Unmeasured, true), (Manner::Severed(20), false), (Manner::Severed(TEXT.len()), false)]
    {
        let answer = move |_: &server::Request| Reply::body(TEXT.to_vec()).manner(manner);
        for server in [Server::secure(&identity, answer), Server::start(answer)] {
            let url = Url::parse(&server.url("/x")).unwrap();
            let request = Request { ca_file: Some(&file.0), ..Request::of(&url) };
            match client().fetch_small(&request, 100) {
                Ok(found) => assert!(is_whole && found == TEXT, "{url} {manner:?}"),
                Err(error) => {
                    assert!(!is_whole && error.is_passing(), "{url} {manner:?}: {error}");
                    assert!(matches!(error, HttpError::Truncated { .. }), "{error:?}");
                }
            }
        }
    }
}
