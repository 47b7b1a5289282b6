//! A native attacker: a runner without an engine, which applies the real lockdown and then does in the run's process what
//! the test on the other end of its socket says, one command a line. It stands for a program that has broken out of the engine.
//!
//! Started as `codemode-runner ENGINE/OUTER/ROLE`: `OUTER` is a filter laid around the whole process first, `none`,
//! `docker` (what Docker's default profile refuses), `NUMBER=ERRNO` (one system call that fails) or `late:NUMBER=ERRNO` (one
//! that fails from when the zygote is sealed).
//!
//! Started as `run OUTER COMMAND…` it is no attacker: it lays the filter and becomes the command, so that anything can be
//! tried in those surroundings.
#![expect(unsafe_code, reason = "an attacker; test-only and shipped nowhere")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "an attacker's calls are wrong on purpose; nothing here is kept sound by reasons"
)]
#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "raw system calls take whatever fits a register"
)]

use std::io::Write as _;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;

use codemode_lockdown::socket::{recv_packet, send_packet};
use codemode_lockdown::{ChildPlan, Engine, Fork, Role, Sealed, StepError};
use codemode_wire::control::{BootRequest, ForkRequest, ZygoteFrame};
use codemode_wire::limits::{CONTROL_BYTES_MAX, WIRE_VERSION};
use codemode_wire::message::ChildFrame;

/// Where the C library keeps this thread's id, asked for while that is still possible.
static mut THREAD_ID_SLOT: usize = 0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, run, outer, command, rest @ ..] = arguments.as_slice()
        && run == "run"
    {
        outer_filter(outer, false);
        let error = std::process::Command::new(command).args(rest).exec();
        eprint(&format!("cannot start `{command}`: {error}\n"));
        std::process::exit(126);
    }
    let mode = std::env::args().nth(1).unwrap_or_default();
    let mut words = mode.splitn(3, '/');
    let (Some(engine), Some(outer), Some(role)) = (words.next(), words.next(), words.next()) else {
        eprint("usage: ENGINE/OUTER/ROLE");
        std::process::exit(64);
    };
    let engine = Engine::ALL.into_iter().find(|known| known.name() == engine).expect("a known engine");
    unsafe { libc::prctl(40, &raw mut THREAD_ID_SLOT, 0, 0, 0) };
    let (outer, late) = match outer.strip_prefix("late:") {
        Some(late) => ("none", late),
        None => (outer, "none"),
    };
    outer_filter(outer, false);
    let role = match role {
        "once" => Role::Once,
        "strip" => Role::Strip,
        _ => Role::Zygote,
    };
    if role == Role::Strip { strip(engine) } else { zygote(engine, role, late) }
}

fn eprint(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn exit(code: i32) -> ! {
    unsafe { libc::_exit(code) }
}

fn zygote(engine: Engine, role: Role, late: &str) -> ! {
    let control = codemode_lockdown::claim_control().expect("a control socket");
    let mut buffer = [0_u8; CONTROL_BYTES_MAX];
    let boot = recv_packet(control, &mut buffer).expect("a boot request");
    let boot = BootRequest::decode(&buffer[..boot.len]).expect("a boot request");
    let sealed = codemode_lockdown::confine_zygote(&boot, engine, role).and_then(|confined| confined.seal());
    let mut sealed = Some(match sealed {
        Ok(sealed) => sealed,
        Err(StepError { step, errno }) => {
            let _ = send_packet(control, &ZygoteFrame::Fault { step: step.to_owned(), errno }.encode());
            exit(1)
        }
    });
    outer_filter(late, true);
    let ready = ZygoteFrame::Ready {
        version: WIRE_VERSION,
        engine: engine.name().to_owned(),
        engine_version: String::new(),
        jit: engine.compiles(),
        layers: sealed.as_ref().map(|sealed| sealed.reports().to_vec()).unwrap_or_default(),
        globals: Vec::new(),
    };
    send_packet(control, &ready.encode()).expect("the test listens");
    loop {
        let packet = recv_packet(control, &mut buffer).expect("a request");
        if packet.len == 0 {
            exit(0);
        }
        let request = ForkRequest::decode(&buffer[..packet.len]).expect("a fork request");
        let forked = if role == Role::Once {
            let pid = unsafe { libc::getpid() };
            let _ = send_packet(control, &ZygoteFrame::Forked { pid }.encode());
            Ok(Fork::Child)
        } else {
            sealed.as_ref().expect("sealed until it becomes a run's process").fork()
        };
        match forked {
            Ok(Fork::Child) => child(sealed.take().expect("sealed"), packet.fd, &request),
            Ok(Fork::Zygote { pid }) => {
                drop(packet.fd);
                send_packet(control, &ZygoteFrame::Forked { pid }.encode()).expect("the test listens");
            }
            Err(StepError { step, errno }) => {
                let frame = ZygoteFrame::ForkFailed { step: step.to_owned(), errno };
                send_packet(control, &frame.encode()).expect("the test listens");
            }
        }
    }
}

fn strip(engine: Engine) -> ! {
    let stream = codemode_lockdown::claim_stream().expect("a stream");
    let mut buffer = [0_u8; 256];
    let len = nix::unistd::read(stream, &mut buffer).expect("a boot request");
    let boot = BootRequest::decode(&buffer[..len]).expect("a boot request");
    let request = ForkRequest { nonce: [0; 16], cpu_seconds: 60, data_bytes: 256 << 20, ahead: false };
    match codemode_lockdown::confine_zygote(&boot, engine, Role::Strip).and_then(|confined| confined.seal()) {
        Ok(sealed) => child(sealed, None, &request),
        Err(StepError { step, errno }) => {
            let _ = nix::unistd::write(stream, &ChildFrame::Fault { step, errno }.encode());
            exit(1)
        }
    }
}

const STEPS_MAX: usize = 16;

fn child(sealed: Sealed, run: Option<std::os::fd::OwnedFd>, request: &ForkRequest) -> ! {
    let mut times = [("start", now_ns()); STEPS_MAX];
    let mut count = 1;
    let locked = sealed.confine_child_watched(run, &ChildPlan::from(request), |step| {
        times[count] = (step, now_ns());
        count += 1;
    });
    let locked = match locked {
        Ok(locked) => locked,
        Err(StepError { step, errno }) => {
            let fault = ChildFrame::Fault { step, errno }.encode();
            let _ = nix::unistd::write(codemode_lockdown::run_socket(), &fault);
            exit(1)
        }
    };
    let hello = ChildFrame::Hello { version: WIRE_VERSION, nonce: request.nonce, layers: locked.layers() };
    let _ = nix::unistd::write(locked.run(), &hello.encode());
    serve(locked.run(), &times[..count])
}

/// Reads commands, a line each, and answers each with a line.
fn serve(run: BorrowedFd<'static>, times: &[(&str, u64)]) -> ! {
    let mut pending = Vec::new();
    loop {
        let mut buffer = [0_u8; 4096];
        match nix::unistd::read(run, &mut buffer) {
            Ok(0) | Err(_) => exit(0),
            Ok(len) => pending.extend_from_slice(&buffer[..len]),
        }
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            let answer = command(&line, times);
            let _ = nix::unistd::write(run, format!("{answer}\n").as_bytes());
        }
    }
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn command(line: &str, times: &[(&str, u64)]) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match words[0] {
        "syscall" => raw_syscall(&words[1..]),
        "int80" => int80(words[1].parse().expect("a number")),
        "jit" => jit(),
        "abort" => unsafe { libc::abort() },
        "panic" => std::panic::catch_unwind(|| panic!("as told"))
            .map_or_else(|_| "0 0".to_owned(), |()| "-1 0".to_owned()),
        "segv" => unsafe {
            std::ptr::write_volatile(8 as *mut u8, 1);
            "survived 0".to_owned()
        },
        "spin" => loop {
            std::hint::spin_loop();
        },
        "nap" => {
            let result = unsafe { libc::poll(std::ptr::null_mut(), 0, words[1].parse().expect("a number")) };
            format!("{result} 0")
        }
        "environ" => format!("{} 0", std::env::vars_os().count()),
        "tid" => {
            let kept = unsafe { *(THREAD_ID_SLOT as *const i32) };
            let (pid, tid) = unsafe { (libc::getpid(), libc::syscall(libc::SYS_gettid)) };
            format!("{} 0", i32::from(kept == pid && tid == i64::from(pid)))
        }
        "allocate" => allocate(words[1].parse().expect("a number")),
        "split" => split_mappings(),
        "abstract" => abstract_socket(words[1]),
        "tcp" => tcp(words[1].parse().expect("a number")),
        "times" => times
            .windows(2)
            .map(|pair| format!("{}={}", pair[1].0.replace(' ', "_"), pair[1].1 - pair[0].1))
            .collect::<Vec<_>>()
            .join(" "),
        other => format!("unknown {other}"),
    }
}

/// `syscall NUMBER ARG…`: an argument is a number, `s:TEXT` for the address of that text, `z` or `o` for the address of a page of
/// zeroes or ones. Answers the result and the error number.
fn raw_syscall(words: &[&str]) -> String {
    let mut keep: Vec<Vec<u8>> = Vec::new();
    let mut value = |word: &&str| -> i64 {
        if let Some(text) = word.strip_prefix("s:") {
            let mut text = text.as_bytes().to_vec();
            text.push(0);
            keep.push(text);
        } else if *word == "z" {
            keep.push(vec![0; 4096]);
        } else if *word == "o" {
            keep.push(vec![0xff; 4096]);
        } else {
            return word.parse::<i64>().unwrap_or_else(|_| word.parse::<u64>().expect("a number") as i64);
        }
        keep.last().expect("just pushed").as_ptr() as i64
    };
    let mut args = [0_i64; 7];
    for (slot, word) in args.iter_mut().zip(words) {
        *slot = value(word);
    }
    unsafe { *libc::__errno_location() = 0 };
    let result = unsafe { libc::syscall(args[0], args[1], args[2], args[3], args[4], args[5], args[6]) };
    let errno = if result == -1 { unsafe { *libc::__errno_location() } } else { 0 };
    format!("{result} {errno}")
}

/// Enters the kernel by the door of 32-bit programs.
#[cfg(target_arch = "x86_64")]
fn int80(number: i32) -> String {
    let mut result = i64::from(number);
    unsafe { std::arch::asm!("int 0x80", inout("rax") result) };
    format!("{result} 0")
}

#[cfg(not(target_arch = "x86_64"))]
fn int80(_number: i32) -> String {
    "no such door".to_owned()
}

/// Makes memory executable in the way a compiler does, and runs what it wrote there: a function that returns 42.
#[cfg(target_arch = "x86_64")]
fn jit() -> String {
    const CODE: [u8; 6] = [0xb8, 42, 0, 0, 0, 0xc3];
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return "-1 12".to_owned();
    }
    unsafe { std::ptr::copy_nonoverlapping(CODE.as_ptr(), page.cast::<u8>(), CODE.len()) };
    if unsafe { libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC) } != 0 {
        return format!("-1 {}", unsafe { *libc::__errno_location() });
    }
    let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(page) };
    format!("{} 0", function())
}

#[cfg(not(target_arch = "x86_64"))]
fn jit() -> String {
    "42 0".to_owned()
}

/// Maps and touches memory by the MiB until the kernel refuses; answers how many it got.
fn allocate(most: u64) -> String {
    const MIB: usize = 1 << 20;
    for count in 0..most {
        let block = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                MIB,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if block == libc::MAP_FAILED {
            return format!("{count} {}", unsafe { *libc::__errno_location() });
        }
        for page in (0..MIB).step_by(4096) {
            unsafe { std::ptr::write_volatile(block.cast::<u8>().add(page), 1) };
        }
    }
    format!("{most} 0")
}

/// Makes as many separate mappings as the kernel lets it.
fn split_mappings() -> String {
    for count in 0..1_000_000_u32 {
        let prot = if count % 2 == 0 { libc::PROT_READ } else { libc::PROT_NONE };
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, prot, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        if page == libc::MAP_FAILED {
            return format!("{count} {}", unsafe { *libc::__errno_location() });
        }
    }
    "1000000 0".to_owned()
}

fn outcome<T>(result: std::io::Result<T>) -> String {
    match result {
        Ok(_) => "0 0".to_owned(),
        Err(error) => format!("-1 {}", error.raw_os_error().unwrap_or(0)),
    }
}

fn abstract_socket(name: &str) -> String {
    use std::os::linux::net::SocketAddrExt as _;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name.as_bytes());
    outcome(address.and_then(|address| std::os::unix::net::UnixStream::connect_addr(&address)))
}

fn tcp(port: u16) -> String {
    outcome(std::net::TcpStream::connect(("127.0.0.1", port)))
}

const fn line(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Lays a filter around the whole process, as a container would.
fn outer_filter(outer: &str, late: bool) {
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let refused: Vec<(i64, i32)> = match outer {
        "none" => return,
        "docker" => {
            let refused = [
                libc::SYS_unshare,
                libc::SYS_setns,
                libc::SYS_mount,
                libc::SYS_umount2,
                libc::SYS_pivot_root,
                libc::SYS_bpf,
                libc::SYS_perf_event_open,
                libc::SYS_keyctl,
                libc::SYS_add_key,
                libc::SYS_request_key,
                libc::SYS_io_uring_setup,
                libc::SYS_userfaultfd,
                libc::SYS_kcmp,
                libc::SYS_pidfd_getfd,
            ];
            let mut refused: Vec<_> = refused.into_iter().map(|number| (number, libc::EPERM)).collect();
            refused.push((libc::SYS_clone3, libc::ENOSYS));
            if unsafe { libc::geteuid() } != 0 {
                refused.push((libc::SYS_chroot, libc::EPERM));
            }
            refused
        }
        one => {
            let (number, errno) = one.split_once('=').expect("NUMBER=ERRNO");
            vec![(number.parse().expect("a number"), errno.parse().expect("a number"))]
        }
    };
    let mut program = vec![line(0x20, 0, 0, 0)];
    for (number, errno) in refused {
        program.push(line(0x15, number as u32, 0, 1));
        program.push(line(0x06, ERRNO | errno as u32, 0, 0));
    }
    if outer == "docker" {
        // clone with any namespace flag.
        program.push(line(0x15, libc::SYS_clone as u32, 0, 3));
        program.push(line(0x20, 16, 0, 0));
        program.push(line(0x45, 0x7e02_0000, 0, 1));
        program.push(line(0x06, ERRNO | libc::EPERM as u32, 0, 0));
    }
    program.push(line(0x06, ALLOW, 0, 0));
    let prog = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    if !late && unsafe { libc::geteuid() } != 0 {
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    }
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const prog) };
    assert_eq!(result, 0, "the outer filter must install");
}
