//! Messages on their way to a harness: bounded by their bytes, so that one that does not read costs nobody but itself.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use codemode_proto::registry_v1::RegistryMessage;
use futures::Stream;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::Status;

type Queued = (Result<RegistryMessage, Status>, Option<OwnedSemaphorePermit>);

/// The sending side.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Nothing once the stream is over.
    queue: Mutex<Option<mpsc::UnboundedSender<Queued>>>,
    room: Arc<Semaphore>,
    bytes_max: u32,
}

/// The messages of one stream as the transport takes them.
#[derive(Debug)]
pub(in crate::service) struct Responses(mpsc::UnboundedReceiver<Queued>);

impl Outgoing {
    pub(super) fn new(bytes_max: u32) -> (Self, Responses) {
        let (queue, received) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(bytes_max as usize));
        (Self { queue: Mutex::new(Some(queue)), room, bytes_max }, Responses(received))
    }

    /// What a message takes of the room; one that is longer than all of it takes all.
    fn room_of(&self, message: &RegistryMessage) -> u32 {
        u32::try_from(message.encoded_len()).unwrap_or(u32::MAX).clamp(1, self.bytes_max)
    }

    /// Queues a message if there is room for it.
    pub(super) fn offer(&self, message: RegistryMessage) -> bool {
        let room = Arc::clone(&self.room).try_acquire_many_owned(self.room_of(&message));
        room.is_ok_and(|room| self.put((Ok(message), Some(room))))
    }

    /// Queues a message once there is room for it: only for answers to the harness's own messages, whose reading waits.
    pub(super) async fn send(&self, message: RegistryMessage) {
        let room = Arc::clone(&self.room).acquire_many_owned(self.room_of(&message)).await.ok();
        self.put((Ok(message), room));
    }

    /// Queues a small message, room or not: only for what follows a message that had room, once.
    pub(super) fn push(&self, message: RegistryMessage) {
        self.put((Ok(message), None));
    }

    /// Ends the stream, with OK or with a status.
    pub(super) fn end(&self, status: Option<Status>) {
        if let Some(status) = status {
            self.put((Err(status), None));
        }
        self.queue.lock().take();
    }

    /// Resolves when nobody takes messages any more.
    pub(super) async fn closed(&self) {
        let queue = self.queue.lock().clone();
        if let Some(queue) = queue {
            queue.closed().await;
        }
    }

    fn put(&self, queued: Queued) -> bool {
        self.queue.lock().as_ref().is_some_and(|queue| queue.send(queued).is_ok())
    }
}

impl Stream for Responses {
    type Item = Result<RegistryMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|queued| queued.map(|(message, _room)| message))
    }
}
