//! What would work, found out by trying in throw-away processes.
//!
//! A step that fails half way cannot be undone, so whatever may be forbidden is first done by a forked child that ends
//! at once. What succeeded there is then done for real, and must succeed.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;

use codemode_wire::control::{BootRequest, ZygoteFrame};
use codemode_wire::{Layer, LayerReport, LayerSet};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, geteuid, pipe2};

use crate::engine::{Engine, Role};
use crate::error::{Step, StepError};
use crate::fds::CONTROL_FD;
use crate::namespaces::{self, Apart};
use crate::privileges;
use crate::sys::{self, Cloned};
use crate::zygote;

/// Runs a step in a forked child and returns how it went. The step's name is lost on the way, its errno is not. That there
/// is no child to try it in says nothing about the step, and is an error of its own: a layer must not go missing
/// because the machine was short of processes for a moment.
fn try_apart(apart: Apart, drop_to: Option<u32>) -> Result<Result<(), Errno>, StepError> {
    const STEP: &str = "try namespaces";
    match sys::fork().step(STEP)? {
        Cloned::Child => {
            let code = match set_apart(apart, drop_to) {
                Ok(()) => 0,
                Err(error) => error.errno.clamp(1, 255),
            };
            sys::exit_now(code)
        }
        Cloned::Parent(pid) => match waitpid(Pid::from_raw(pid), None).step(STEP)? {
            WaitStatus::Exited(_, 0) => Ok(Ok(())),
            WaitStatus::Exited(_, errno) => Ok(Err(Errno::from_raw(errno))),
            // Killed, by a filter around us for instance, which then would kill us too.
            _ => Ok(Err(Errno::EPERM)),
        },
    }
}

/// Sets the process apart and drops its user id, in the order that its rights ask for.
pub(crate) fn set_apart(apart: Apart, drop_to: Option<u32>) -> Result<(), StepError> {
    if apart.before_user_drop() {
        apart.enter()?;
    }
    if let Some(uid) = drop_to {
        let _ = privileges::drop_bounding_set();
        privileges::become_user(uid)?;
    }
    if !apart.before_user_drop() {
        apart.enter()?;
    }
    Ok(())
}

/// The strongest way to set the process apart that works here, and why the layers it lacks are missing.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) apart: Apart,
    pub(crate) missing: Vec<(Layer, String)>,
}

/// Tries the ways from the strongest to the weakest.
pub(crate) fn find_way(layers_off: LayerSet, drop_to: Option<u32>) -> Result<Way, StepError> {
    let wanted: LayerSet =
        namespaces::LAYERS.into_iter().filter(|layer| !layers_off.contains(*layer)).collect();
    let mut way = Way { apart: Apart::No, missing: Vec::new() };
    if wanted.is_empty() {
        return Ok(way);
    }
    let mut failures: Vec<(Layer, Errno)> = Vec::new();
    if wanted.contains(Layer::UserNamespace) {
        let found = largest(wanted, Layer::UserNamespace, drop_to, &mut failures)?;
        if !found.is_empty() {
            way.apart = Apart::Namespaces(found);
        }
    }
    if way.apart == Apart::No && geteuid().is_root() {
        let without_user = wanted.without(Layer::UserNamespace);
        let mut found = LayerSet::EMPTY;
        for layer in without_user.iter() {
            let with = found.with(layer);
            match try_apart(Apart::Namespaces(with), drop_to)? {
                Ok(()) => found = with,
                Err(errno) => failures.push((layer, errno)),
            }
        }
        if !found.is_empty() {
            way.apart = Apart::Namespaces(found);
        } else if wanted.contains(Layer::EmptyRoot) {
            match try_apart(Apart::DeadRoot, drop_to)? {
                Ok(()) => way.apart = Apart::DeadRoot,
                Err(errno) => failures.push((Layer::EmptyRoot, errno)),
            }
        }
    }
    let user_namespace_refused = failures.iter().any(|(layer, _)| *layer == Layer::UserNamespace);
    let first = failures.first().map_or(Errno::EPERM, |(_, errno)| *errno);
    for layer in wanted.minus(way.apart.layers()).iter() {
        let errno =
            failures.iter().rev().find(|(failed, _)| *failed == layer).map_or(first, |(_, errno)| *errno);
        way.missing.push((layer, explain(layer, errno, user_namespace_refused)));
    }
    Ok(way)
}

/// The largest set of layers around `base` that can be entered together. All at once first, which is one fork where
/// everything works.
fn largest(
    wanted: LayerSet,
    base: Layer,
    drop_to: Option<u32>,
    failures: &mut Vec<(Layer, Errno)>,
) -> Result<LayerSet, StepError> {
    if try_apart(Apart::Namespaces(wanted), drop_to)?.is_ok() {
        return Ok(wanted);
    }
    let mut found = LayerSet::EMPTY;
    for layer in std::iter::once(base).chain(wanted.without(base).iter()) {
        let with = found.with(layer);
        match try_apart(Apart::Namespaces(with), drop_to)? {
            Ok(()) => found = with,
            Err(errno) => failures.push((layer, errno)),
        }
        if !found.contains(base) {
            break;
        }
    }
    Ok(found)
}

/// The reason in words. Layers that fell with the user namespace point to it instead of repeating it.
fn explain(layer: Layer, errno: Errno, user_namespace_refused: bool) -> String {
    if user_namespace_refused && layer != Layer::UserNamespace {
        return format!("needs a user namespace or CAP_SYS_ADMIN, see there: {}", errno.desc());
    }
    let cure = match errno {
        Errno::EPERM | Errno::EACCES => {
            "allow `unshare` with CLONE_NEWUSER in the container's seccomp profile, or user namespaces in the host's AppArmor rules"
        }
        Errno::ENOSPC | Errno::EUSERS => "raise `user.max_user_namespaces` and its like on the host",
        Errno::EINVAL | Errno::ENOSYS => "the kernel must be built with these namespaces",
        _ => "the container forbids it",
    };
    format!("refused: {}; {cure}", errno.desc())
}

/// How every layer would stand in a child, without changing this process: a forked child goes through the whole
/// lockdown and reports. For start-up checks and for the curious. Needs a process with one thread.
///
/// # Errors
/// The step that failed in the child.
pub fn probe(boot: &BootRequest, engine: Engine) -> Result<Vec<LayerReport>, StepError> {
    const STEP: &str = "probe";
    let (mine, theirs) = pipe2(OFlag::O_CLOEXEC).step(STEP)?;
    match sys::fork().step(STEP)? {
        Cloned::Child => {
            let frame = report_in_child(theirs.as_raw_fd(), boot, engine);
            let mut pipe = std::fs::File::from(sys::own(CONTROL_FD));
            let written = pipe.write_all(&frame.encode());
            sys::exit_now(i32::from(written.is_err()))
        }
        Cloned::Parent(pid) => {
            drop(theirs);
            let mut packet = Vec::new();
            let read = std::fs::File::from(mine).read_to_end(&mut packet);
            waitpid(Pid::from_raw(pid), None).step(STEP)?;
            read.step(STEP)?;
            match ZygoteFrame::decode(&packet) {
                Ok(ZygoteFrame::Ready { layers, .. }) => Ok(layers),
                Ok(ZygoteFrame::Fault { errno, .. }) => Err(StepError { step: STEP, errno }),
                _ => Err(StepError::new(STEP, Errno::EPROTO)),
            }
        }
    }
}

fn report_in_child(pipe: i32, boot: &BootRequest, engine: Engine) -> ZygoteFrame {
    let reports = sys::dup_to(pipe, CONTROL_FD)
        .step("probe")
        .and_then(|()| zygote::confine_zygote(boot, engine, Role::Zygote))
        .and_then(zygote::Confined::seal)
        .map(|sealed| sealed.reports().to_vec());
    match reports {
        Ok(layers) => ZygoteFrame::Ready {
            version: codemode_wire::limits::WIRE_VERSION,
            engine: engine.name().to_owned(),
            engine_version: String::new(),
            jit: engine.compiles(),
            layers,
            globals: Vec::new(),
        },
        Err(StepError { step, errno }) => ZygoteFrame::Fault { step: step.to_owned(), errno },
    }
}
