//! Contexts as the `nats` program keeps them: which servers there are, and who one is to them.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;

use super::NatsError;

/// The variables of the environment, by name.
pub(crate) type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Which context is to be used, and what it is looked up with.
#[derive(Clone)]
pub(crate) struct ContextChoice {
    /// Its name, or an absolute path.
    pub(crate) name: String,
    pub(crate) variables: Variables,
}

impl fmt::Debug for ContextChoice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("ContextChoice").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The context that is used when nobody names one.
pub(crate) const DEFAULT_CONTEXT: &str = "CCM";

/// Where the servers are when a context does not say.
const DEFAULT_SERVER: &str = "nats://127.0.0.1:4222";

/// A context that was read. Paths in it are as they are to be opened.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Context {
    url: String,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) token: String,
    pub(super) creds: String,
    pub(super) nkey: String,
    pub(super) cert: String,
    pub(super) key: String,
    pub(super) ca: String,
    pub(super) tls_first: bool,
    socks_proxy: String,
    pub(super) inbox_prefix: String,
    pub(super) jetstream_domain: String,
    nsc: String,
    user_jwt: String,
    jetstream_api_prefix: String,
    jetstream_event_prefix: String,
}

impl Context {
    /// Reads the context of that name.
    pub(super) fn read(choice: &ContextChoice) -> Result<Self, NatsError> {
        let path = choice.path()?;
        let text = read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => NatsError::NoContext { name: choice.name.clone(), path: path.clone() },
            _ => NatsError::Unreadable { path: path.clone(), reason: error.to_string() },
        })?;
        Self::parse(&text, &path, &choice.variables)
    }

    fn parse(text: &str, path: &Path, variables: &Variables) -> Result<Self, NatsError> {
        let bad = |reason: String| NatsError::BadContext { path: path.to_owned(), reason };
        // What serde says of a value of the wrong type quotes it, and it may be a password.
        let mut context: Self = serde_json::from_str(text).map_err(|error| {
            bad(format!("not a context as `nats context` writes it, line {}", error.line()))
        })?;
        let unsupported = [
            ("socks_proxy", &context.socks_proxy),
            ("nsc", &context.nsc),
            ("user_jwt", &context.user_jwt),
            ("jetstream_api_prefix", &context.jetstream_api_prefix),
            ("jetstream_event_prefix", &context.jetstream_event_prefix),
        ];
        if let Some((key, _)) = unsupported.iter().find(|(_, value)| !value.is_empty()) {
            return Err(bad(format!("{key} is not supported")));
        }
        if context.cert.is_empty() != context.key.is_empty() {
            return Err(bad("cert and key go together".to_owned()));
        }
        for path in [
            &mut context.creds,
            &mut context.nkey,
            &mut context.cert,
            &mut context.key,
            &mut context.ca,
            &mut context.url,
        ] {
            *path = expand(path, variables);
        }
        Ok(context)
    }

    /// Returns the servers, each with its scheme.
    pub(super) fn servers(&self) -> Vec<String> {
        let given: Vec<String> =
            self.url.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect();
        if given.is_empty() { vec![DEFAULT_SERVER.to_owned()] } else { given }
    }

    /// Returns the servers as messages show them: without what stands before an `@`.
    pub(super) fn shown_servers(&self) -> String {
        let bare = |url: &String| {
            let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
            format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default())
        };
        self.servers().iter().map(bare).collect::<Vec<_>>().join(", ")
    }
}

impl ContextChoice {
    /// Returns a choice of no context, for fuzzers.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn nowhere() -> Self {
        Self { name: "none".to_owned(), variables: Arc::new(|_| None) }
    }

    /// Returns the file that the context is in.
    fn path(&self) -> Result<PathBuf, NatsError> {
        if Path::new(&self.name).is_absolute() {
            return Ok(PathBuf::from(&self.name));
        }
        let variable = |name: &str| (self.variables)(name).filter(|value| !value.is_empty());
        let folder = variable("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(Path::new(&variable("HOME")?).join(".config")));
        let folder = folder.ok_or_else(|| NatsError::NoHome { name: self.name.clone() })?;
        Ok(folder.join("nats/context").join(format!("{}.json", self.name)))
    }
}

/// Reads a file that a context is in or names.
#[expect(clippy::disallowed_methods, reason = "contexts and logins are files of the user's own")]
pub(super) fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Replaces `~` at the beginning, `$NAME` and `${NAME}`; what is not set is empty.
fn expand(text: &str, variables: &Variables) -> String {
    let variable = |name: &str| variables(name).unwrap_or_default();
    let mut expanded = String::new();
    let mut rest = text;
    if let Some(path) = rest.strip_prefix('~').filter(|path| path.is_empty() || path.starts_with('/')) {
        expanded.push_str(&variable("HOME"));
        rest = path;
    }
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let (name, behind) = match after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            Some(braced) => braced,
            None => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len()))
            }
        };
        expanded.push_str(if name.is_empty() { "$" } else { "" });
        expanded.push_str(&variable(name));
        rest = behind;
    }
    expanded + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        Arc::new(|name| match name {
            "HOME" => Some("/home/u".to_owned()),
            "CREDS" => Some("/etc/creds".to_owned()),
            _ => None,
        })
    }

    fn parse(text: &str) -> Result<Context, NatsError> {
        Context::parse(text, Path::new("/c.json"), &variables())
    }

    #[test]
    fn a_context_of_the_nats_program_is_read() {
        let context = parse(
            r#"{"description": "x", "url": "nats://u:p@a:1, tls://b", "creds": "$CREDS/a.creds", "ca": "~/ca.pem",
                "nkey": "${CREDS}/a$", "user": "", "color_scheme": "", "jetstream_domain": "hub", "tls_first": true}"#,
        )
        .unwrap();
        assert_eq!(context.servers(), ["nats://u:p@a:1", "tls://b"]);
        assert_eq!(context.shown_servers(), "nats://a:1, tls://b");
        assert_eq!(
            (&*context.creds, &*context.ca, &*context.nkey),
            ("/etc/creds/a.creds", "/home/u/ca.pem", "/etc/creds/a$")
        );
        assert!(context.tls_first);
        assert_eq!(parse("{}").unwrap().servers(), [DEFAULT_SERVER]);
    }

    #[test]
    fn what_is_wrong_with_a_context_is_said_without_quoting_it() {
        for (text, reason) in [
            (r#"{"socks_proxy": "socks5://p:1"}"#, "socks_proxy is not supported"),
            (r#"{"nsc": "nsc://op/acc/user"}"#, "nsc is not supported"),
            (r#"{"user_jwt": "7071"}"#, "user_jwt is not supported"),
            (r#"{"jetstream_api_prefix": "JS.7071"}"#, "jetstream_api_prefix is not supported"),
            (r#"{"jetstream_event_prefix": "JS.7071"}"#, "jetstream_event_prefix is not supported"),
            (r#"{"cert": "/c"}"#, "cert and key go together"),
            ("{\n\"password\": 7071\n}", "line 2"),
        ] {
            let Err(error) = parse(text) else { panic!("{text}") };
            let error = error.to_string();
            assert!(error.contains(reason) && !error.contains("7071"), "{error}");
        }
    }

    #[test]
    fn contexts_lie_where_the_nats_program_puts_them() {
        let path =
            |name: &str, variables: Variables| ContextChoice { name: name.to_owned(), variables }.path();
        assert_eq!(path("CCM", variables()).unwrap(), Path::new("/home/u/.config/nats/context/CCM.json"));
        let xdg: Variables = Arc::new(|name| (name == "XDG_CONFIG_HOME").then(|| "/x".to_owned()));
        assert_eq!(path("CCM", xdg).unwrap(), Path::new("/x/nats/context/CCM.json"));
        assert_eq!(path("/a/b.json", Arc::new(|_| None)).unwrap(), Path::new("/a/b.json"));
        assert!(matches!(path("CCM", Arc::new(|_| None)), Err(NatsError::NoHome { .. })));
    }
}
