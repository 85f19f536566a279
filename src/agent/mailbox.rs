//! Messages to the agent's main thread, which waits for them together with signals and file events.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
};

use rustix::event::{EventfdFlags, eventfd};

/// What the main thread is sent.
pub(crate) struct Mailbox<T> {
    messages: Receiver<T>,
    bell: Arc<OwnedFd>,
    sender: mpsc::Sender<T>,
}

/// Sends messages and wakes the main thread.
pub(crate) struct Sender<T> {
    send: Arc<dyn Fn(T) -> Result<(), Closed> + Send + Sync>,
}

/// Nobody reads messages any more.
#[derive(Debug)]
pub(crate) struct Closed;

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { send: Arc::clone(&self.send) }
    }
}

impl<T> Sender<T> {
    pub(crate) fn send(&self, message: T) -> Result<(), Closed> {
        (self.send)(message)
    }
}

impl<T: Send + 'static> Mailbox<T> {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let (sender, messages) = mpsc::channel();
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Self { messages, bell, sender })
    }

    /// Returns a sender whose messages are wrapped on their way.
    pub(crate) fn sender<M: 'static>(&self, wrap: impl Fn(M) -> T + Send + Sync + 'static) -> Sender<M> {
        let (sender, bell) = (self.sender.clone(), Arc::clone(&self.bell));
        let send = move |message| {
            sender.send(wrap(message)).map_err(|_| Closed)?;
            // A counter that is full has woken the reader long ago.
            let _ = rustix::io::write(&bell, &1_u64.to_ne_bytes());
            Ok(())
        };
        Sender { send: Arc::new(send) }
    }

    /// Returns the messages that have come since.
    pub(crate) fn take(&self) -> Vec<T> {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.messages.try_iter().collect()
    }
}

impl<T> AsFd for Mailbox<T> {
    /// Readable when there is a message.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
