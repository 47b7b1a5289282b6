//! What is printed, in one order: a thread of its own writes, so that a reader that stands still never holds up the run.
//!
//! What waits to be written is bounded by the run's output budget. On a terminal, a line at the bottom shows the elapsed time
//! and the calls in flight, and everything else is written above it.

use std::io::{IsTerminal as _, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use codemode_client::{AbortSignal, RunEvent, RunObserver};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tokio::sync::oneshot;

use crate::report;

/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(100);
/// How long the last words may take to be written; beyond it nobody is reading.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Something to write.
enum Entry {
    /// To standard output, with a newline.
    Out(String),
    /// To standard error, with a newline.
    Err(String),
    /// Everything before it is written, or what came in the way of it: a reader that has gone away does not count.
    Flushed(oneshot::Sender<Option<std::io::Error>>),
}

/// Where the command's texts go. Clones share one thread.
#[derive(Clone)]
pub(crate) struct Console {
    entries: mpsc::Sender<Entry>,
    progress: ProgressBar,
    settings: Settings,
    in_flight: Arc<AtomicU64>,
}

/// What is shown of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Standard output is for one JSON object: no logs, no value.
    pub(crate) json: bool,
    /// Calls are shown.
    pub(crate) trace: bool,
}

impl Console {
    /// Starts the thread. `closed` fires when standard output's reader has gone away.
    pub(crate) fn new(settings: Settings, closed: AbortSignal) -> Self {
        let progress = progress();
        let (entries, receiver) = mpsc::channel();
        let drawn = progress.clone();
        std::thread::spawn(move || write_all(&receiver, &drawn, &closed));
        Self { entries, progress, settings, in_flight: Arc::default() }
    }

    /// Writes a line, or several, to standard output.
    pub(crate) fn out(&self, text: impl Into<String>) {
        self.send(Entry::Out(text.into()));
    }

    /// Writes a line, or several, to standard error.
    pub(crate) fn err(&self, text: impl Into<String>) {
        self.send(Entry::Err(text.into()));
    }

    fn send(&self, entry: Entry) {
        // The thread ends with the last sender only.
        let _ = self.entries.send(entry);
    }

    /// Takes the progress line away and waits, for a while, until everything is written.
    ///
    /// # Errors
    /// The first text that standard output did not take, as on a full disk. A reader that has gone away is none: it has
    /// seen enough.
    pub(crate) async fn finish(&self) -> std::io::Result<()> {
        self.progress.finish_and_clear();
        let (flushed, done) = oneshot::channel();
        self.send(Entry::Flushed(flushed));
        match tokio::time::timeout(FLUSH_MAX, done).await {
            Ok(Ok(Some(error))) => Err(error),
            // A reader that stands still is not waited for.
            Ok(Ok(None) | Err(_)) | Err(_) => Ok(()),
        }
    }

    /// Whether there is a progress line.
    pub(crate) fn has_progress(&self) -> bool {
        !self.progress.is_hidden()
    }

    fn show_in_flight(&self) {
        let message = match self.in_flight.load(Ordering::Relaxed) {
            0 => String::new(),
            1 => "1 call in flight".to_owned(),
            count => format!("{count} calls in flight"),
        };
        self.progress.set_message(message);
    }
}

impl RunObserver for Console {
    fn on_event(&self, event: RunEvent<'_>) {
        match event {
            RunEvent::Log { text } if !self.settings.json => self.out(text),
            RunEvent::Retrying { endpoint, message, delay } if self.settings.trace => {
                self.err(format!("retry in {}: {endpoint}: {message}", report::duration(delay)));
            }
            RunEvent::Started { run_id, engine } if self.settings.trace => {
                self.err(format!("run {run_id} on {engine}"))
            }
            RunEvent::CallStarted { call_id, global, name, argument_bytes } => {
                self.in_flight.fetch_add(1, Ordering::Relaxed);
                self.show_in_flight();
                if self.settings.trace {
                    self.err(format!("call #{call_id} {global}.{name}: {argument_bytes} B"));
                }
            }
            RunEvent::CallSettled { call_id, global, name, result, elapsed } => {
                self.in_flight.fetch_sub(1, Ordering::Relaxed);
                self.show_in_flight();
                if self.settings.trace {
                    let result = result
                        .map_or_else(|message| format!("failed: {message}"), |bytes| format!("{bytes} B"));
                    self.err(format!(
                        "reply #{call_id} {global}.{name}: {result}, {}",
                        report::duration(elapsed)
                    ));
                }
            }
            _ => {}
        }
    }
}

/// The line at the bottom; hidden where standard error is no terminal.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {tenths} {msg}") {
        bar.set_style(style.with_key("tenths", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            // The line is drawn again in a moment.
            let _ = write!(out, "{:.1} s", state.elapsed().as_secs_f32());
        }));
    }
    bar.enable_steady_tick(TICK);
    bar
}

/// The thread's body.
fn write_all(entries: &mpsc::Receiver<Entry>, progress: &ProgressBar, closed: &AbortSignal) {
    let (out_is_terminal, err_is_terminal) =
        (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
    let mut lost = None;
    for entry in entries {
        match entry {
            Entry::Out(text) => {
                let written =
                    progress.suspend(|| write_line(&mut std::io::stdout().lock(), &text, out_is_terminal));
                match written {
                    Ok(()) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                        closed.abort("standard output was closed");
                    }
                    Err(error) => {
                        closed.abort(format!("standard output cannot be written: {error}"));
                        lost = lost.or(Some(error));
                    }
                }
            }
            // Where standard error is closed, nobody is listening.
            Entry::Err(text) => {
                let _ =
                    progress.suspend(|| write_line(&mut std::io::stderr().lock(), &text, err_is_terminal));
            }
            Entry::Flushed(flushed) => {
                let _ = flushed.send(lost.take());
            }
        }
    }
}

fn write_line(to: &mut impl Write, text: &str, is_terminal: bool) -> std::io::Result<()> {
    if is_terminal {
        to.write_all(report::for_terminal(text).as_bytes())?;
    } else {
        to.write_all(text.as_bytes())?;
    }
    to.write_all(b"\n")?;
    to.flush()
}
