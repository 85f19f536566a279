//! Runs that are undone on their host unless the controller confirms them through a new connection.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    connection::Means,
    host::{Archive, Host, News, perform},
    protocol::Request,
    result::{HostResult, Outcome},
};

/// How long to try after the deadline, when the host has undone the run.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// Pause between attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);

/// What happens to a run that awaits confirmation.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    Keep,
    /// With the reason.
    Undo(String),
}

/// Confirms the run of a result, or undoes it. Without a confirmation, the host has failed.
pub(super) fn settle(
    host: &Host,
    means: &Means,
    result: &mut HostResult,
    verdict: &Verdict,
    report: &mut dyn FnMut(News),
) {
    let Some((run, left)) = result.awaited() else { return };
    let (run, until) = (run.to_owned(), Instant::now() + left + GRACE);
    let keeps = matches!(verdict, Verdict::Keep) && result.outcome == Outcome::Ok;
    let mut arguments = vec!["confirm".to_owned()];
    arguments.extend((!keeps).then(|| "--undo".to_owned()));
    arguments.extend(["--".to_owned(), run.clone()]);
    let request = Request { arguments, ..Request::default() };
    let mut cut_off: Option<String> = None;
    let answer = loop {
        let answer = perform(host, means, &request, &Archive::empty(), None, &mut |_| {});
        let has_time = Instant::now() < until && host.stop.load(Ordering::Relaxed) == 0;
        if answer.outcome != Outcome::Unreachable || !has_time {
            break answer;
        }
        if cut_off.is_none() {
            let reason = answer.reason.unwrap_or_default();
            report(News::Message(format!("no new connection to confirm run {run}: {reason}")));
            cut_off = Some(reason);
        }
        host.pause(PAUSE);
    };
    let reason = answer.reason.unwrap_or_default();
    let cut_off = result
        .lost
        .take()
        .or(cut_off)
        .map(|reason| format!("the change cut off the connection ({reason}): "));
    let cut_off = cut_off.unwrap_or_default();
    match (answer.outcome, verdict) {
        (Outcome::Ok, _) if keeps => {}
        (Outcome::Ok, Verdict::Undo(why)) if result.outcome == Outcome::Ok => {
            result.fail(format!("run {run} was undone: {why}"));
        }
        // The reason of a host that failed says more.
        (Outcome::Ok, _) => {}
        (Outcome::Unreachable, _) => {
            result.fail(format!("run {run} was not confirmed, so the host undoes it: {reason}"));
        }
        _ if keeps => result.fail(format!("{cut_off}run {run} was not confirmed in time and was undone")),
        _ => result.fail(format!("run {run} is not undone: {reason}")),
    }
}
