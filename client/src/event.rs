//! What a caller can watch while a run goes on. Watching changes nothing: the outcome is complete without it.

use std::time::Duration;

use crate::request::RunId;

/// Something that happened in a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// An executor turned the run away before it started; it is tried again.
    Retrying {
        /// The endpoint that turned it away.
        endpoint: &'a str,
        /// What it said.
        message: &'a str,
        /// How long until the next attempt.
        delay: Duration,
    },
    /// The run was admitted.
    Started {
        /// Its id.
        run_id: RunId,
        /// Engine that runs it.
        engine: &'a str,
    },
    /// One entry of the program's log, without a trailing newline.
    Log {
        /// The entry.
        text: &'a str,
    },
    /// The program called a binding.
    CallStarted {
        /// The call's id, from 1.
        call_id: u64,
        /// The namespace's global.
        global: &'a str,
        /// The function's name.
        name: &'a str,
        /// Bytes of its argument.
        argument_bytes: usize,
    },
    /// A binding answered. A call whose run settles first has no such event.
    CallSettled {
        /// The call's id.
        call_id: u64,
        /// The namespace's global.
        global: &'a str,
        /// The function's name.
        name: &'a str,
        /// Bytes of the value, or the failure's message.
        result: Result<usize, &'a str>,
        /// From call to answer.
        elapsed: Duration,
    },
}

/// Watches runs. Called on the run's own tasks: it must not block, and may be called from several threads at once.
pub trait RunObserver: Send + Sync {
    /// Something happened.
    fn on_event(&self, event: RunEvent<'_>);
}

impl<F: Fn(RunEvent<'_>) + Send + Sync> RunObserver for F {
    fn on_event(&self, event: RunEvent<'_>) {
        self(event);
    }
}
