//! Questions of `ssh`, one at a time on the controller's terminal.
//!
//! `ssh` runs this program as its `SSH_ASKPASS`. That process passes the question on through a socket in a private directory, and
//! prints the answer.

use std::{
    collections::{HashMap, HashSet},
    env,
    fs::File,
    io::{self, BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde::{Deserialize, Serialize};

use super::{
    super::{failure::Failure, progress::Progress},
    own_program,
};
use crate::{
    host::files::PrivateFolder,
    push::{ASKPASS_HOST, ASKPASS_SOCKET},
    visible::visible,
};

/// A question of `ssh`.
#[derive(Serialize, Deserialize)]
struct Question {
    host: String,
    prompt: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// A secret, or an answer such as `yes`.
    Text,
    /// Yes or no.
    Confirm,
    /// A request such as to touch a token.
    Notice,
}

/// Where `ssh` asks. Dropping it removes the socket.
pub(in crate::cli) struct Askpass {
    program: PathBuf,
    folder: PrivateFolder,
    socket: PathBuf,
    listener: UnixListener,
}

impl Askpass {
    #[expect(clippy::disallowed_methods, reason = "the socket is in a private folder")]
    pub(super) fn open() -> io::Result<Self> {
        let program = own_program().map_err(|failure| io::Error::other(failure.to_string()))?;
        let name = format!("ccm-ask-{}", crate::push::random_hex());
        let folder = PrivateFolder::make_new(&env::temp_dir().join(name)).map_err(io::Error::other)?;
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket)?;
        Ok(Self { program, folder, socket, listener })
    }

    pub(super) fn program_and_socket(&self) -> (PathBuf, PathBuf) {
        (self.program.clone(), self.socket.clone())
    }

    /// Answers questions until the program ends. `questions` is called when a question of a host opens and closes.
    pub(super) fn serve(
        &self,
        progress: Arc<Progress>,
        questions: impl Fn(&str, bool) + Send + Sync + 'static,
    ) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        let desk = Arc::new(Desk { progress, questions: Box::new(questions), known: Mutex::default() });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let desk = Arc::clone(&desk);
                thread::spawn(move || desk.serve(&stream));
            }
        });
        Ok(())
    }
}

impl Drop for Askpass {
    fn drop(&mut self) {
        let _ = self.folder.remove("socket".as_ref());
        let _ = self.folder.remove_self();
    }
}

/// Answers that were given, and the hosts that used them, by question.
type Known = HashMap<String, (String, HashSet<String>)>;

/// Called with a host when a question of it opens and closes.
type OnQuestion = Box<dyn Fn(&str, bool) + Send + Sync>;

struct Desk {
    progress: Arc<Progress>,
    questions: OnQuestion,
    /// Held while a question is on the terminal.
    known: Mutex<Known>,
}

impl Desk {
    fn serve(&self, mut stream: &UnixStream) {
        let mut line = String::new();
        if BufReader::new(stream).read_line(&mut line).is_err() {
            return;
        }
        let Ok(question) = serde_json::from_str::<Question>(&line) else { return };
        (self.questions)(&question.host, true);
        let answer = self.answer(&question);
        (self.questions)(&question.host, false);
        let _ = writeln!(stream, "{}", serde_json::json!(answer));
    }

    fn answer(&self, question: &Question) -> Option<String> {
        let Question { host, prompt, kind } = question;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // A host that asks again did not accept the answer.
        if let Some((answer, hosts)) = known.get_mut(prompt)
            && hosts.insert(host.clone())
        {
            return Some(answer.clone());
        }
        self.progress.hide();
        let shown = format!("{host}: {}", prompt.trim_end());
        let is_secret = *kind == Kind::Text && !prompt.contains("yes/no");
        let answer = match kind {
            Kind::Notice => tell(&shown).ok().map(|()| String::new()),
            Kind::Confirm => ask(&format!("{shown} (yes/no) "), false).ok(),
            Kind::Text => ask(&format!("{shown} "), is_secret).ok(),
        }?;
        if is_secret && prompt.contains("passphrase") {
            known.insert(prompt.clone(), (answer.clone(), HashSet::from([host.clone()])));
        }
        Some(answer)
    }
}

#[expect(clippy::disallowed_methods, reason = "the terminal of the user")]
fn terminal() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

fn tell(text: &str) -> io::Result<()> {
    writeln!(terminal()?, "{}", visible(text))
}

/// Asks on the terminal.
fn ask(prompt: &str, is_secret: bool) -> io::Result<String> {
    let mut terminal = terminal()?;
    write!(terminal, "{}", visible(prompt))?;
    let before = tcgetattr(&terminal)?;
    if is_secret {
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    }
    let mut answer = String::new();
    let read = BufReader::new(&terminal).read_line(&mut answer);
    if is_secret {
        tcsetattr(&terminal, OptionalActions::Now, &before)?;
        writeln!(terminal)?;
    }
    if read? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(answer.trim_end_matches(['\n', '\r']).to_owned())
}

/// Asks for a password on the terminal.
pub(super) fn ask_password(prompt: &str) -> Result<String, String> {
    ask(prompt, true).map_err(|error| format!("cannot ask for a password: {error}"))
}

/// Answers as the askpass program of `ssh`, if this process is one.
pub(in crate::cli) fn answer() -> Option<Result<String, Failure>> {
    let socket = env::var_os(ASKPASS_SOCKET)?;
    let prompt = env::args().nth(1)?;
    let kind = match env::var("SSH_ASKPASS_PROMPT").as_deref() {
        Ok("confirm") => Kind::Confirm,
        Ok("none") => Kind::Notice,
        _ => Kind::Text,
    };
    let host = env::var(ASKPASS_HOST).unwrap_or_default();
    let question = Question { host, prompt, kind };
    Some(pass_on(Path::new(&socket), &question).map_err(|error| Failure::new(format!("cannot ask: {error}"))))
}

#[expect(clippy::disallowed_methods, reason = "the controller's socket")]
fn pass_on(socket: &Path, question: &Question) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    writeln!(stream, "{}", serde_json::to_string(question)?)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let answer: Option<String> = serde_json::from_str(&line)?;
    let answer = answer.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    if question.kind == Kind::Confirm && !answer.eq_ignore_ascii_case("yes") {
        return Err(io::Error::other("the user declined"));
    }
    if question.kind == Kind::Notice {
        // `ssh` terminates the process when the token was touched.
        thread::park();
    }
    Ok(answer)
}
