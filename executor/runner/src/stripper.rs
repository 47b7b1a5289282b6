//! The `strip` role: erases types, one program after the other, in a process that is locked down like a run's.
//!
//! The parser can overflow its stack on a hostile program. Then this process dies and the executor starts another;
//! what it was working on is the program that killed it.

use codemode_lockdown::{ChildPlan, Engine, Role, claim_stream, confine_zygote, exit_now};
use codemode_strip::{StripResult, strip};
use codemode_wire::control::BootRequest;
use codemode_wire::exit;
use codemode_wire::limits::WIRE_VERSION;
use codemode_wire::strip::{StripAnswer, StripHello, StripRequest};

use crate::channel::Channel;

/// Largest frame until the boot request says another, bytes.
const BOOT_FRAME_BYTES_MAX: u32 = 64 * 1024;
/// Memory that stripping may take above what the process starts with, bytes.
const DATA_BYTES: u64 = 1 << 30;

/// Serves the stream until it ends.
pub(crate) fn run() -> ! {
    let Ok(stream) = claim_stream() else { exit_now(exit::CONTROL) };
    let mut channel = Channel::new(stream, BOOT_FRAME_BYTES_MAX);
    let boot = receive_boot(&mut channel);
    codemode_strip::warm_up();
    // No engine runs here, so the tightest of the policies holds.
    let plan = ChildPlan { cpu_seconds: u32::MAX, data_bytes: DATA_BYTES };
    let locked = confine_zygote(&boot, Engine::Quickjs, Role::Strip)
        .and_then(|confined| confined.seal())
        .and_then(|sealed| sealed.confine_child(None, &plan));
    match locked {
        Ok(locked) => {
            let hello = StripHello::Ready { version: WIRE_VERSION, layers: locked.layers() };
            channel.send_bytes(&hello.encode());
        }
        Err(error) => {
            let fault = StripHello::Fault { step: error.step.to_owned(), errno: error.errno };
            channel.send_bytes(&fault.encode());
            exit_now(exit::FAULT);
        }
    }
    channel.set_frame_bytes_max(boot.frame_bytes_max);
    loop {
        let answer = answer_next(&mut channel);
        channel.send_bytes(&answer.encode());
    }
}

fn receive_boot(channel: &mut Channel) -> BootRequest {
    loop {
        if let Some(frame) = channel.next_frame() {
            return BootRequest::from_frame(frame).unwrap_or_else(|_| exit_now(exit::CONTROL));
        }
        channel.read_some();
    }
}

fn answer_next(channel: &mut Channel) -> StripAnswer {
    loop {
        if let Some(frame) = channel.next_frame() {
            let Ok(StripRequest { id, program }) = StripRequest::decode(frame) else {
                exit_now(exit::CONTROL)
            };
            return match strip(program) {
                StripResult::Stripped { shape, source, hints } => {
                    StripAnswer::Stripped { id, shape, source, hints }
                }
                StripResult::Refused { message, line, column } => {
                    StripAnswer::Refused { id, message, line, column }
                }
            };
        }
        channel.read_some();
    }
}
