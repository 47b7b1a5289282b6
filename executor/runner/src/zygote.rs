//! The `zygote` and `once` roles: boot the engine under the first stage of the lockdown, finish the second, then make
//! one process for each request, or become the only one.
//!
//! Never sees a program: that travels on the run's own socket, to a process that has said it is locked down.

use std::os::fd::{BorrowedFd, OwnedFd};

use codemode_lockdown::socket::{recv_packet, send_packet};
use codemode_lockdown::{
    ChildPlan, Fork, Role, Sealed, StepError, claim_control, confine_zygote, exit_now, run_socket,
};
use codemode_wire::control::{BootRequest, ForkRequest, ZygoteFrame};
use codemode_wire::exit;
use codemode_wire::limits::{CONTROL_BYTES_MAX, WIRE_VERSION};
use codemode_wire::message::ChildFrame;
use nix::unistd::getpid;

use crate::channel::Channel;
use crate::engine::{self, Engine};
use crate::heap;
use crate::ops::ENGINE;
use crate::program;
use crate::snapshot;
use crate::sys::{fill_heap_holes, mark_forkable};

/// How long a process that was made ahead waits for its program before it warms up, milliseconds.
const WARM_UP_AFTER_MS: u16 = 10;

/// A step that failed before there was anything to serve with.
struct Fault {
    step: String,
    errno: i32,
}

impl From<StepError> for Fault {
    fn from(error: StepError) -> Self {
        Self { step: error.step.to_owned(), errno: error.errno }
    }
}

/// Serves the control socket until it ends; in the `once` role, until the first request.
pub(crate) fn run(role: Role) -> ! {
    let Ok(control) = claim_control() else { exit_now(exit::CONTROL) };
    let boot = receive_boot(control);
    match prepare(role, &boot) {
        Ok((sealed, engine)) => {
            announce(control, &sealed, &engine, &boot);
            serve(control, sealed, engine, role, boot.frame_bytes_max)
        }
        Err(Fault { step, errno }) => {
            send(control, &ZygoteFrame::Fault { step, errno });
            exit_now(exit::FAULT)
        }
    }
}

fn receive_boot(control: BorrowedFd<'_>) -> BootRequest {
    let mut buffer = [0_u8; CONTROL_BYTES_MAX];
    let Ok(packet) = recv_packet(control, &mut buffer) else { exit_now(exit::CONTROL) };
    match BootRequest::decode(&buffer[..packet.len]) {
        Ok(boot) if packet.fd.is_none() && packet.len > 0 => boot,
        _ => exit_now(exit::CONTROL),
    }
}

/// Both stages of the lockdown, with the engine's boot between them.
fn prepare(role: Role, boot: &BootRequest) -> Result<(Sealed, Engine), Fault> {
    let kind = codemode_lockdown::Engine::of(ENGINE, boot.jitless)
        .ok_or_else(|| Fault { step: "engine".to_owned(), errno: 0 })?;
    // A zygote boots once for thousands of runs; the process of a single run is worth a snapshot.
    let snapshot = if role == Role::Once { snapshot::load(boot.jitless) } else { None };
    let confined = confine_zygote(boot, kind, role)?;
    let mut engine = Engine::boot(boot.jitless, snapshot)
        .map_err(|error| Fault { step: format!("boot: {error}"), errno: 0 })?;
    // QuickJS compiles everything at boot; a rehearsal would only spread its reference counts over more pages.
    if role == Role::Zygote && kind.is_v8() {
        program::rehearse(&mut engine);
    }
    if role == Role::Zygote {
        fill_heap_holes();
    }
    if let Some(maps) = confined.maps() {
        mark_forkable(maps).map_err(|error| Fault { step: format!("mark forkable: {error}"), errno: 0 })?;
    }
    Ok((confined.seal()?, engine))
}

fn announce(control: BorrowedFd<'_>, sealed: &Sealed, engine: &Engine, boot: &BootRequest) {
    send(
        control,
        &ZygoteFrame::Ready {
            version: WIRE_VERSION,
            engine: ENGINE.to_owned(),
            engine_version: engine::version(),
            jit: cfg!(feature = "v8") && !boot.jitless,
            layers: sealed.reports().to_vec(),
            globals: engine.globals.clone(),
        },
    );
}

fn send(control: BorrowedFd<'_>, frame: &ZygoteFrame) {
    if send_packet(control, &frame.encode()).is_err() {
        exit_now(exit::CONTROL);
    }
}

fn serve(control: BorrowedFd<'_>, sealed: Sealed, engine: Engine, role: Role, frame_bytes_max: u32) -> ! {
    loop {
        let (request, socket) = receive_request(control);
        if role == Role::Once {
            send(control, &ZygoteFrame::Forked { pid: getpid().as_raw() });
            become_run(sealed, engine, &request, socket, frame_bytes_max);
        }
        match sealed.fork() {
            Ok(Fork::Child) => become_run(sealed, engine, &request, socket, frame_bytes_max),
            Ok(Fork::Zygote { pid }) => send(control, &ZygoteFrame::Forked { pid }),
            Err(error) => {
                send(control, &ZygoteFrame::ForkFailed { step: error.step.to_owned(), errno: error.errno })
            }
        }
    }
}

fn receive_request(control: BorrowedFd<'_>) -> (ForkRequest, OwnedFd) {
    let mut buffer = [0_u8; CONTROL_BYTES_MAX];
    match recv_packet(control, &mut buffer) {
        Ok(packet) if packet.len == 0 => exit_now(exit::DONE),
        Ok(packet) => match (ForkRequest::decode(&buffer[..packet.len]), packet.fd) {
            (Ok(request), Some(socket)) => (request, socket),
            _ => exit_now(exit::CONTROL),
        },
        Err(_) => exit_now(exit::CONTROL),
    }
}

/// Finishes the lockdown of this process and runs the one program that it will ever see.
fn become_run(
    sealed: Sealed,
    mut engine: Engine,
    request: &ForkRequest,
    socket: OwnedFd,
    frame_bytes_max: u32,
) -> ! {
    let locked = sealed.confine_child(Some(socket), &ChildPlan::from(request));
    let mut channel = Channel::new(run_socket(), frame_bytes_max);
    match locked {
        Ok(locked) => {
            channel.send(&ChildFrame::Hello {
                version: WIRE_VERSION,
                nonce: request.nonce,
                layers: locked.layers(),
            });
            heap::end_by_panics(&mut engine.runtime);
            // Not where runs come so fast that this one's is here already: they would wait for it, and for its share
            // of the processor.
            if request.ahead && !channel.has_input_within(WARM_UP_AFTER_MS) {
                program::warm_up(&mut engine);
            }
            program::run(engine, channel)
        }
        Err(error) => {
            channel.send(&ChildFrame::Fault { step: error.step, errno: error.errno });
            exit_now(exit::FAULT)
        }
    }
}
