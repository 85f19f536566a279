//! Selects the proxy of a request.

use super::HttpError;
use crate::vocabulary::{Login, Scheme, Secret, Url};

/// Proxies from the environment, with the semantics of curl. Their URLs can contain passwords and are never shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    http: Option<Secret>,
    https: Option<Secret>,
    /// Hosts that need no proxy.
    except: Vec<String>,
}

impl Proxies {
    /// Reads `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` through `variable`, the last three in either case:
    /// `HTTP_PROXY` could be a request header of a web server that runs this program.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let either = |name: &str| given(name).or_else(|| given(&name.to_uppercase()));
        let all = either("all_proxy");
        let except = either("no_proxy").unwrap_or_default();
        Self {
            http: given("http_proxy").or_else(|| all.clone()).map(Secret::new),
            https: either("https_proxy").or(all).map(Secret::new),
            except: except
                .split(',')
                .map(|host| host.trim().to_ascii_lowercase())
                .filter(|host| !host.is_empty())
                .collect(),
        }
    }

    /// Returns the proxy for a URL.
    pub(super) fn of(&self, url: &Url) -> Result<Option<Proxy>, HttpError> {
        self.address(url).map(|address| Proxy::new(address, url)).transpose()
    }

    fn address(&self, url: &Url) -> Option<&Secret> {
        let proxy = match url.scheme() {
            Scheme::Http => &self.http,
            Scheme::Https => &self.https,
        };
        proxy.as_ref().filter(|_| !self.except.iter().any(|pattern| covers(pattern, url)))
    }
}

/// Proxy for one URL.
pub(super) struct Proxy {
    route: ureq::Proxy,
    /// URL of the request.
    url: String,
}

impl Proxy {
    /// Returns the proxy with the given URL.
    pub(super) fn given(address: &str, url: &Url) -> Result<Self, HttpError> {
        Self::new(&Secret::new(address), url)
    }

    fn new(address: &Secret, url: &Url) -> Result<Self, HttpError> {
        let known = |route: &ureq::Proxy| matches!(route.uri().scheme_str(), Some("http" | "https"));
        let route = ureq::Proxy::new(address.reveal()).ok().filter(known);
        let url = url.to_string();
        match route {
            Some(route) => Ok(Self { route, url }),
            None => Err(HttpError::NoProxy { url }),
        }
    }

    pub(super) fn route(&self) -> ureq::Proxy {
        self.route.clone()
    }

    pub(super) fn is_secure(&self) -> bool {
        self.route.uri().scheme_str() == Some("https")
    }

    /// Returns the user and password in the URL of the proxy.
    pub(super) fn login(&self) -> Option<Login> {
        let user = Secret::new(self.route.username()?);
        Some(Login { user, password: Secret::new(self.route.password().unwrap_or_default()) })
    }

    /// Assigns a connection error to the proxy, which is named without its password.
    pub(super) fn blame(&self, error: HttpError) -> HttpError {
        let scheme = self.route.uri().scheme_str().unwrap_or("http");
        let (proxy, url) =
            (format!("{scheme}://{}:{}", self.route.host(), self.route.port()), self.url.clone());
        match error {
            HttpError::Unreachable { reason, .. } => HttpError::Proxy { proxy, url, reason },
            HttpError::NoTunnel { status, .. } => HttpError::ProxyRefused { proxy, url, status },
            error => error,
        }
    }
}

/// Matches a pattern: `*`, a host, or a domain with or without a leading dot, each with or without a port.
fn covers(pattern: &str, url: &Url) -> bool {
    if pattern == "*" {
        return true;
    }
    let host = url.host().trim_matches(['[', ']']);
    let with_port = pattern.rsplit_once(':').filter(|(before, port)| {
        !port.is_empty()
            && port.bytes().all(|digit| digit.is_ascii_digit())
            && (!before.contains(':') || before.ends_with(']'))
    });
    let (name, port) = with_port.map_or((pattern, None), |(name, port)| (name, port.parse().ok()));
    let name = name.trim_matches(['[', ']']).trim_start_matches('.');
    port.is_none_or(|port: u16| port == url.port())
        && (host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(variables: &[(&str, &str)], url: &str) -> Option<String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let proxies = Proxies::from_environment(variable);
        proxies.address(&Url::parse(url).unwrap()).map(|proxy| proxy.reveal().to_owned())
    }

    #[test]
    fn each_scheme_has_its_proxy() {
        let variables = [("http_proxy", "a"), ("HTTPS_PROXY", "b")];
        assert_eq!(through(&variables, "http://h/").as_deref(), Some("a"));
        assert_eq!(through(&variables, "https://h/").as_deref(), Some("b"));
        assert_eq!(through(&[("all_proxy", "c")], "https://h/").as_deref(), Some("c"));
        assert_eq!(through(&[("HTTP_PROXY", "a"), ("https_proxy", "")], "http://h/"), None);
    }

    #[test]
    fn hosts_and_domains_are_left_out() {
        for (no_proxy, url, direct) in [
            ("*", "http://h/", true),
            ("example.com", "http://example.com/", true),
            ("example.com", "http://www.example.com/", true),
            (".example.com", "http://www.example.com/", true),
            ("example.com", "http://notexample.com/", false),
            ("a, localhost , b", "http://localhost:81/", true),
            ("localhost:81", "http://localhost:81/", true),
            ("localhost:81", "http://localhost/", false),
            ("::1", "http://[::1]/", true),
            ("[::1]:81", "http://[::1]:81/", true),
            ("127.0.0.1", "http://127.0.0.1/", true),
            ("", "http://h/", false),
        ] {
            let proxy = through(&[("http_proxy", "p"), ("no_proxy", no_proxy)], url);
            assert_eq!(proxy.is_none(), direct, "{no_proxy:?} {url}");
        }
    }
}
