//! Observes responses of servers over HTTP and HTTPS.

use std::{cell::OnceCell, time::Duration};

use super::{
    super::lens::{Lens, Unseen},
    Observer,
};
use crate::{
    checks::{Observed, Rule},
    host::http::{Answer, HttpError, Probe, Redirects, Trust},
    vocabulary::{Login, Secret, Url},
};

const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends the request when the first property is requested.
pub(super) fn observer<'a>(rule: &'a Rule, lens: &'a Lens<'a>) -> Observer<'a> {
    let asked: OnceCell<Result<Answer, HttpError>> = OnceCell::new();
    let own = rule.options.timeout.unwrap_or(TIMEOUT);
    Box::new(move |property| {
        let url = Url::parse(&rule.subject).map_err(|error| Unseen::Not(error.to_string()))?;
        match asked.get_or_init(|| ask(rule, &url, own, lens)) {
            Ok(answer) => Ok(match property {
                "status" => u64::from(answer.status).into(),
                "headers" => Observed::Text(answer.headers.join("\n")),
                "time" => u64::try_from(answer.time.as_millis()).unwrap_or(u64::MAX).into(),
                _ => Observed::Text(String::from_utf8_lossy(&answer.body).into_owned()),
            }),
            Err(HttpError::TimeUp { .. }) => Err(lens.too_slow(own)),
            Err(error @ (HttpError::Interrupted | HttpError::CaFile { .. })) => {
                Err(Unseen::Cannot(error.to_string()))
            }
            Err(error) => Err(Unseen::Not(error.to_string())),
        }
    })
}

fn ask(rule: &Rule, url: &Url, own: Duration, lens: &Lens) -> Result<Answer, HttpError> {
    let options = &rule.options;
    let [ca_file, cert_file, key_file] = [&options.ca_file, &options.cert_file, &options.key_file]
        .map(|file| file.as_ref().map(|file| lens.path(file)));
    let login = options.username.as_ref().map(|user| Login {
        user: Secret::new(user),
        password: options.password.clone().unwrap_or_else(|| Secret::new("")),
    });
    let method = options.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
    lens.host.http.probe(&Probe {
        url,
        method: &method,
        headers: &options.request_headers,
        body: options.request_body.as_deref().unwrap_or_default(),
        login,
        ca_file: ca_file.as_deref(),
        identity: cert_file.as_deref().zip(key_file.as_deref()),
        proxy: options.proxy.as_deref(),
        trust: if options.allow_insecure { Trust::Anybody } else { Trust::Verified },
        redirects: if options.no_follow_redirects { Redirects::Shown } else { Redirects::Followed },
        timeout: lens.within(own),
    })
}
