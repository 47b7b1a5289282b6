//! What a program that has broken out of the engine may try, one test per family, in a real run's process.
//!
//! Where a second layer stands behind the first, the same attack is tried again with the first turned off, so that each is
//! shown to hold alone. Numbers in the names' comments are those of the attack catalogue.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use codemode_lockdown::Engine;
use codemode_wire::Layer;
use common::{Answer, SIGSYS, Setup, Zygote, is_root, matrix, skip, start_strip};
use nix::sys::signal::Signal;

const ENGINES: [Engine; 3] = Engine::ALL;

/// A system call in the words of the hostile runner.
fn call(number: i64, args: &str) -> String {
    let padded = format!("syscall {number} {args} 0 0 0 0 0 0");
    padded.split_whitespace().take(8).collect::<Vec<_>>().join(" ")
}

/// Every attack dies by SIGSYS, whoever started the process and whatever surrounds it.
fn all_die(attacks: &[(&str, String)]) {
    for engine in [Engine::V8, Engine::Quickjs] {
        for setup in matrix(engine) {
            let zygote = Zygote::start(setup);
            for (name, attack) in attacks {
                assert_eq!(zygote.run().attack(attack), SIGSYS, "{setup:?}: {name}");
            }
        }
    }
}

/// An answer that is a refusal with one of these error numbers.
fn refused(answer: Answer, errnos: &[i32]) -> bool {
    matches!(answer, Answer::Returned(-1, errno) if errnos.contains(&errno))
}

// 65, 66, 92
#[test]
fn no_process_and_no_thread_can_be_made() {
    let thread =
        libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
    let mut attacks = vec![
        ("fork", call(libc::SYS_clone, &libc::SIGCHLD.to_string())),
        ("the zygote's fork", call(libc::SYS_clone, &(libc::CLONE_PARENT | libc::SIGCHLD).to_string())),
        ("thread", call(libc::SYS_clone, &thread.to_string())),
        ("user namespace", call(libc::SYS_clone, &(libc::CLONE_NEWUSER | libc::SIGCHLD).to_string())),
        ("unshare", call(libc::SYS_unshare, &libc::CLONE_NEWUSER.to_string())),
        ("setns", call(libc::SYS_setns, "3")),
    ];
    #[cfg(target_arch = "x86_64")]
    attacks.extend([("old fork", call(libc::SYS_fork, "")), ("vfork", call(libc::SYS_vfork, ""))]);
    all_die(&attacks);
    let zygote = Zygote::start(Setup::new(Engine::V8));
    assert_eq!(zygote.run().attack(&call(libc::SYS_clone3, "z 64")), Answer::Returned(-1, libc::ENOSYS));

    // Without the allowlist: the process limit. It does not bind root, which a run never is.
    let zygote = Zygote::start(Setup::new(Engine::Quickjs).without(&[Layer::Seccomp]));
    if is_root() || zygote.in_force(Layer::UserNamespace) {
        let answer = zygote.run().attack(&call(libc::SYS_clone, &libc::SIGCHLD.to_string()));
        assert!(refused(answer, &[libc::EAGAIN]), "{answer:?}");
    }
}

// 85
#[test]
fn nothing_can_be_executed() {
    all_die(&[
        ("execve", call(libc::SYS_execve, "s:/bin/sh z z")),
        ("execveat", call(libc::SYS_execveat, "3 s:x z z 4096")),
        ("memfd", call(libc::SYS_memfd_create, "s:x 0")),
    ]);
}

// 86
#[test]
fn memory_does_not_become_executable() {
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mmap =
        |prot: i32, flags: i32, fd: i32| call(libc::SYS_mmap, &format!("0 4096 {prot} {flags} {fd} 0"));
    let rwx = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let rx = libc::PROT_READ | libc::PROT_EXEC;
    for engine in [Engine::V8Jitless, Engine::Quickjs] {
        let zygote = Zygote::start(Setup::new(engine));
        for attack in [
            mmap(rwx, anonymous, -1),
            mmap(rx, anonymous, -1),
            "jit".to_owned(),
            call(libc::SYS_pkey_mprotect, &format!("0 4096 {rx} -1")),
            call(libc::SYS_shmat, &format!("0 0 {}", libc::SHM_EXEC)),
            call(libc::SYS_personality, "4194304"),
        ] {
            assert_eq!(zygote.run().attack(&attack), SIGSYS, "{engine}: {attack}");
        }
        // Without the allowlist: the kernel's own rule. `personality` must not soften it.
        let zygote = Zygote::start(Setup::new(engine).without(&[Layer::Seccomp]));
        if !zygote.in_force(Layer::NoExecMemory) {
            skip("the kernel has no PR_SET_MDWE");
            continue;
        }
        let mut run = zygote.run();
        let answer = run.attack(&mmap(rwx, anonymous, -1));
        assert!(refused(answer, &[libc::EACCES]), "{engine}: {answer:?}");
        let answer = run.attack("jit");
        assert!(refused(answer, &[libc::EACCES]), "{engine}: {answer:?}");
    }
    // And where the engine compiles, it can.
    let zygote = Zygote::start(Setup::new(Engine::V8));
    let mut run = zygote.run();
    assert_eq!(run.attack("jit"), Answer::Returned(42, 0));
    assert_eq!(run.attack(&mmap(rx, libc::MAP_PRIVATE, 3)), SIGSYS);
}

const FILES: [&str; 8] = [
    "/etc/passwd",
    "/proc/self/environ",
    "/proc/self/maps",
    "/proc/self/mem",
    "/proc/1/environ",
    "/var/run/secrets/kubernetes.io/serviceaccount/token",
    "/tmp",
    "/",
];

// 87
#[test]
fn no_file_can_be_opened_with_any_one_layer() {
    let open = |path: &str, flags: i32| call(libc::SYS_openat, &format!("-100 s:{path} {flags}"));
    let only = |layers: &[Layer]| {
        let base = [Layer::UidDrop, Layer::Capabilities, Layer::NoNewPrivileges, Layer::UserNamespace];
        Setup::new(Engine::Quickjs).only(&[&base[..], layers].concat())
    };
    let setups = [
        ("all", Setup::new(Engine::Quickjs), None, &[libc::EACCES][..]),
        ("seccomp", only(&[Layer::Seccomp]), Some(Layer::Seccomp), &[libc::EACCES]),
        ("landlock", only(&[Layer::Landlock]), Some(Layer::Landlock), &[libc::EACCES, libc::ENOENT]),
        ("empty root", only(&[Layer::EmptyRoot]), Some(Layer::EmptyRoot), &[libc::ENOENT]),
        (
            "dead root",
            only(&[Layer::EmptyRoot]).outer("docker"),
            Some(Layer::EmptyRoot),
            &[libc::ENOENT, libc::ESRCH, libc::EACCES],
        ),
    ];
    for (name, setup, needed, errnos) in setups {
        let zygote = Zygote::start(setup);
        if let Some(layer) = needed
            && !zygote.in_force(layer)
        {
            skip(&format!("{name}: {}", zygote.report(layer).reason));
            continue;
        }
        let mut run = zygote.run();
        for path in FILES {
            // An empty root can itself be opened, and there is nothing in it.
            if path == "/" && needed == Some(Layer::EmptyRoot) {
                continue;
            }
            let answer = run.attack(&open(path, libc::O_RDONLY));
            assert!(refused(answer, errnos), "{name}: {path}: {answer:?}");
        }
        let answer = run.attack(&open("/planted", libc::O_WRONLY | libc::O_CREAT));
        assert!(
            refused(answer, &[libc::EACCES, libc::EROFS, libc::ENOENT, libc::ENOSPC, libc::ESRCH]),
            "{name}: creating: {answer:?}"
        );
    }
}

// 58, 88, 89
#[test]
fn no_socket_can_be_made() {
    let socket = |family: i32, kind: i32| call(libc::SYS_socket, &format!("{family} {kind} 0"));
    all_die(&[
        ("internet", socket(libc::AF_INET, libc::SOCK_STREAM)),
        ("internet 6", socket(libc::AF_INET6, libc::SOCK_DGRAM)),
        ("unix", socket(libc::AF_UNIX, libc::SOCK_STREAM)),
        ("netlink", socket(libc::AF_NETLINK, libc::SOCK_RAW)),
        ("virtual machine", socket(libc::AF_VSOCK, libc::SOCK_STREAM)),
        ("crypto", socket(libc::AF_ALG, libc::SOCK_SEQPACKET)),
        ("packet", socket(libc::AF_PACKET, libc::SOCK_RAW)),
        ("pair", call(libc::SYS_socketpair, "1 1 0 z")),
        ("connect", call(libc::SYS_connect, "3 z 16")),
        ("sendmsg", call(libc::SYS_sendmsg, "3 z 0")),
        ("recvmsg", call(libc::SYS_recvmsg, "3 z 0")),
        ("sendto", call(libc::SYS_sendto, "3 z 1 0 z 16")),
        ("shutdown", call(libc::SYS_shutdown, "3 1")),
    ]);
}

/// No device but those that every new namespace has, and no route.
#[test]
fn the_network_namespace_is_bare() {
    let zygote = Zygote::start(Setup::new(Engine::V8));
    if !zygote.in_force(Layer::NetworkNamespace) {
        skip(&zygote.report(Layer::NetworkNamespace).reason);
        return;
    }
    let run = zygote.run();
    if !is_root() {
        skip("only root can look into the process's network namespace");
        return;
    }
    let devices = fs::read_to_string(format!("/proc/{}/net/dev", run.pid)).expect("root may look");
    let devices: Vec<&str> =
        devices.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
    assert!(devices.iter().all(|device| *device == "lo" || device.ends_with('0')), "{devices:?}");
    let routes = fs::read_to_string(format!("/proc/{}/net/route", run.pid)).unwrap();
    assert!(routes.lines().count() <= 1, "more than the heading: {routes}");
}

// 90, 91, 105 (the reach of one run towards another)
#[test]
fn no_other_process_can_be_reached() {
    let own = std::process::id();
    all_die(&[
        ("ptrace", call(libc::SYS_ptrace, &format!("16 {own}"))),
        ("read memory", call(libc::SYS_process_vm_readv, &format!("{own} z 1 z 1 0"))),
        ("write memory", call(libc::SYS_process_vm_writev, &format!("{own} z 1 z 1 0"))),
        ("open process", call(libc::SYS_pidfd_open, &format!("{own} 0"))),
        ("take descriptor", call(libc::SYS_pidfd_getfd, "3 0 0")),
        ("signal by descriptor", call(libc::SYS_pidfd_send_signal, "3 9 0 0")),
        ("compare", call(libc::SYS_kcmp, &format!("{own} {own} 0 0 0"))),
        ("kill the executor", call(libc::SYS_kill, &format!("{own} 9"))),
        ("kill all", call(libc::SYS_kill, "-1 9")),
        ("kill the group", call(libc::SYS_kill, "0 9")),
        ("kill a thread", call(libc::SYS_tkill, &format!("{own} 9"))),
        ("abort the executor", call(libc::SYS_tgkill, &format!("{own} {own} 6"))),
        ("queue a signal", call(libc::SYS_rt_sigqueueinfo, &format!("{own} 9 z"))),
        ("own descriptor signals", call(libc::SYS_fcntl, &format!("3 8 {own}"))),
        ("advise", call(libc::SYS_process_madvise, "3 z 1 4 0")),
        ("clock of another", call(libc::SYS_clock_gettime, "-6 z")),
        ("priority", call(libc::SYS_setpriority, &format!("0 {own} 19"))),
    ]);
}

#[test]
fn no_other_process_can_be_reached_without_the_allowlist() {
    let zygote = Zygote::start(Setup::new(Engine::V8).without(&[
        Layer::Seccomp,
        Layer::UidDrop,
        Layer::UserNamespace,
    ]));
    let own = std::process::id();
    let (sibling, mut run) = (zygote.run(), zygote.run());
    if zygote.in_force(Layer::Landlock) {
        for target in [i64::from(own), i64::from(zygote.pid()), i64::from(sibling.pid)] {
            let answer = run.attack(&call(libc::SYS_kill, &format!("{target} 0")));
            assert!(refused(answer, &[libc::EPERM]), "signal to {target}: {answer:?}");
        }
    } else {
        skip(&zygote.report(Layer::Landlock).reason);
    }
    // Attaching needs a capability or a dumpable target; the executor in production is not dumpable either.
    for target in [i64::from(zygote.pid()), i64::from(sibling.pid)] {
        let answer = run.attack(&call(libc::SYS_ptrace, &format!("16 {target}")));
        assert!(refused(answer, &[libc::EPERM]), "attaching to {target}: {answer:?}");
        let answer = run.attack(&call(libc::SYS_process_vm_readv, &format!("{target} z 0 z 0 0")));
        assert!(
            refused(answer, &[libc::EPERM, libc::EINVAL]) || answer == Answer::Returned(0, 0),
            "{answer:?}"
        );
    }
}

/// A run's process is undumpable, so a process of the same user cannot open its memory either.
#[test]
fn a_process_of_the_same_user_cannot_look_in() {
    if !is_root() {
        skip("must start processes as another user");
        return;
    }
    let zygote =
        Zygote::start(Setup::new(Engine::Quickjs).uid(common::NOBODY).without(&[Layer::UserNamespace]));
    let run = zygote.run();
    let observe = |path: String| {
        let mut command = std::process::Command::new("cat");
        std::os::unix::process::CommandExt::uid(&mut command, common::NOBODY);
        command.arg(path).stderr(std::process::Stdio::null()).output().expect("cat runs")
    };
    for file in ["maps", "environ", "auxv", "mem"] {
        let output = observe(format!("/proc/{}/{file}", run.pid));
        assert!(!output.status.success() && output.stdout.is_empty(), "{file} can be read");
    }
    // While what the executor meters by stays readable.
    assert!(observe(format!("/proc/{}/statm", run.pid)).status.success());
}

// 93, 94, 97, 101
#[test]
fn no_kernel_feature_can_be_opened() {
    all_die(&[
        ("io_uring", call(libc::SYS_io_uring_setup, "8 z")),
        ("userfaultfd", call(libc::SYS_userfaultfd, "0")),
        ("bpf", call(libc::SYS_bpf, "0 z 64")),
        ("perf", call(libc::SYS_perf_event_open, "z 0 -1 -1 0")),
        ("add_key", call(libc::SYS_add_key, "s:user s:x z 1 -1")),
        ("keyctl", call(libc::SYS_keyctl, "0 -1 0")),
        ("fanotify", call(libc::SYS_fanotify_init, "0 0")),
        ("inotify", call(libc::SYS_inotify_init1, "0")),
        ("open by handle", call(libc::SYS_open_by_handle_at, "-100 z 0")),
        ("quotactl", call(libc::SYS_quotactl, "0 z 0 z")),
        ("listener filter", call(libc::SYS_seccomp, "1 8 z")),
        ("second filter", call(libc::SYS_seccomp, "1 0 z")),
        ("landlock", call(libc::SYS_landlock_create_ruleset, "z 8 0")),
        ("mount", call(libc::SYS_mount, "s:x s:/ s:tmpfs 0 z")),
        ("chroot", call(libc::SYS_chroot, "s:/")),
        ("module", call(libc::SYS_init_module, "z 1 z")),
        ("reboot", call(libc::SYS_reboot, "0 0 0 z")),
        ("event", call(libc::SYS_eventfd2, "0 0")),
        ("timer", call(libc::SYS_timerfd_create, "1 0")),
        ("signal descriptor", call(libc::SYS_signalfd4, "-1 z 8 0")),
        ("epoll", call(libc::SYS_epoll_create1, "0")),
        ("pipe", call(libc::SYS_pipe2, "z 0")),
        ("message queue", call(libc::SYS_mq_open, "s:x 66 384 z")),
        ("semaphores", call(libc::SYS_semget, "0 1 512")),
    ]);
}

// 68, 69, 70
#[test]
fn no_resource_outside_the_limits() {
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mmap = |flags: i32| call(libc::SYS_mmap, &format!("0 4096 3 {flags} -1 0"));
    all_die(&[
        ("shared memory", mmap(libc::MAP_SHARED | libc::MAP_ANONYMOUS)),
        ("locked memory", mmap(private | libc::MAP_LOCKED)),
        ("populated memory", mmap(private | libc::MAP_POPULATE)),
        ("huge pages", mmap(private | libc::MAP_HUGETLB)),
        ("growing memory", mmap(private | libc::MAP_GROWSDOWN)),
        ("mlock", call(libc::SYS_mlock, "0 4096")),
        ("mlockall", call(libc::SYS_mlockall, "2")),
        ("shmget", call(libc::SYS_shmget, "0 4096 512")),
        ("dup", call(libc::SYS_dup, "3")),
        ("dup3", call(libc::SYS_dup3, "3 9 0")),
        ("close", call(libc::SYS_close, "3")),
        ("splice", call(libc::SYS_splice, "3 0 2 0 1 0")),
        ("merge", call(libc::SYS_madvise, &format!("0 4096 {}", libc::MADV_MERGEABLE))),
    ]);
    // Without the allowlist: the limit on descriptors.
    let zygote = Zygote::start(Setup::new(Engine::Quickjs).without(&[Layer::Seccomp]));
    let answer = zygote.run().attack(&call(libc::SYS_dup, "3"));
    assert!(refused(answer, &[libc::EMFILE]), "{answer:?}");
}

// 95, 96, 100
#[test]
fn what_answers_gives_nothing_away() {
    for engine in ENGINES {
        let zygote = Zygote::start(Setup::new(engine));
        let mut run = zygote.run();
        let mut check = |attack: String, errno: i32| {
            assert_eq!(run.attack(&attack), Answer::Returned(-1, errno), "{engine}: {attack}");
        };
        check(call(libc::SYS_ioctl, "2 21522 z"), libc::ENOTTY); // TIOCSTI
        check(call(libc::SYS_ioctl, "3 21537 z"), libc::ENOTTY); // FIONBIO
        check(call(libc::SYS_prctl, "4 1"), libc::EINVAL); // PR_SET_DUMPABLE
        check(call(libc::SYS_prctl, "1 0"), libc::EINVAL); // PR_SET_PDEATHSIG
        check(call(libc::SYS_prctl, "35 0"), libc::EINVAL); // PR_SET_MM
        check(call(libc::SYS_prctl, "59 1"), libc::EINVAL); // PR_SET_SYSCALL_USER_DISPATCH
        check(call(libc::SYS_prlimit64, "0 7 z z"), libc::EPERM);
        check(call(libc::SYS_prlimit64, &format!("{} 7 z z", std::process::id())), libc::EPERM);
        check(call(libc::SYS_uname, "z"), libc::EPERM);
        check(call(libc::SYS_openat, "-100 s:/etc/passwd 0"), libc::EACCES);
        check(call(libc::SYS_getcwd, "z 4096"), libc::EACCES);
        assert_eq!(run.attack("environ"), Answer::Returned(0, 0));
    }
}

/// 99, 104, 119: what the process holds, as root sees it from outside.
#[test]
fn the_process_holds_nothing_but_its_four_descriptors() {
    if !is_root() {
        skip("only root can look into the process");
        return;
    }
    for engine in ENGINES {
        for setup in matrix(engine) {
            let zygote = Zygote::start(setup);
            let (first, second) = (zygote.run(), zygote.run());
            let target =
                |path: &str| fs::read_link(path).map(|link| link.display().to_string()).unwrap_or_default();
            let mut sockets = Vec::new();
            for run in [&first, &second] {
                let mut fds: Vec<String> = fs::read_dir(format!("/proc/{}/fd", run.pid))
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name().display().to_string())
                    .collect();
                fds.sort();
                assert_eq!(fds, ["0", "1", "2", "3"], "{setup:?}");
                for standard in [0, 1] {
                    assert!(
                        target(&format!("/proc/{}/fd/{standard}", run.pid)).ends_with("/null"),
                        "{setup:?}"
                    );
                }
                assert!(target(&format!("/proc/{}/fd/2", run.pid)).starts_with("pipe:"), "{setup:?}");
                sockets.push(target(&format!("/proc/{}/fd/3", run.pid)));
                assert_eq!(fs::read(format!("/proc/{}/environ", run.pid)).unwrap(), b"");
                let arguments = fs::read(format!("/proc/{}/cmdline", run.pid)).unwrap();
                assert!(arguments.starts_with(b"codemode-runner\0"), "{setup:?}");
                let status = fs::read_to_string(format!("/proc/{}/status", run.pid)).unwrap();
                let field = |name: &str| {
                    status
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .unwrap_or("")
                        .trim_matches([':', '\t', ' '])
                };
                assert_eq!(field("Threads"), "1");
                assert_eq!(field("NoNewPrivs"), "1");
                assert_eq!(field("Groups"), "", "{setup:?}");
                assert_eq!(field("CapEff"), "0000000000000000");
                assert_eq!(field("CapPrm"), "0000000000000000");
                let filters: u32 = field("Seccomp_filters").parse().unwrap_or(2);
                assert!(filters >= 2, "{setup:?}: {filters} filters");
                assert!(!field("Uid").starts_with("0\t"), "{setup:?}: runs as root");
                if zygote.in_force(Layer::EmptyRoot) {
                    let entries = fs::read_dir(format!("/proc/{}/root/", run.pid)).map_or(0, Iterator::count);
                    assert_eq!(entries, 0, "{setup:?}: the root is not empty");
                }
            }
            assert!(sockets[0].starts_with("socket:") && sockets[0] != sockets[1], "{setup:?}: {sockets:?}");
        }
    }
}

// 104
#[test]
fn the_control_socket_is_out_of_reach() {
    let zygote = Zygote::start(Setup::new(Engine::V8));
    assert_eq!(zygote.run().attack(&call(libc::SYS_write, "4 z 1")), SIGSYS);
    assert_eq!(zygote.run().attack(&call(libc::SYS_read, "5 z 1")), SIGSYS);
    let zygote = Zygote::start(Setup::new(Engine::V8).without(&[Layer::Seccomp]));
    let mut run = zygote.run();
    for fd in 4..16 {
        assert_eq!(
            run.attack(&call(libc::SYS_write, &format!("{fd} z 1"))),
            Answer::Returned(-1, libc::EBADF)
        );
        assert_eq!(
            run.attack(&call(libc::SYS_read, &format!("{fd} z 1"))),
            Answer::Returned(-1, libc::EBADF)
        );
    }
}

// 73
#[test]
fn the_processor_limit_tells_which_it_was() {
    let zygote = Zygote::start(Setup::new(Engine::V8));
    let started = Instant::now();
    let mut run = zygote.run_with(1, 256 << 20);
    assert_eq!(run.attack("spin"), Answer::Killed(Signal::SIGXCPU));
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

// 72
#[test]
fn the_processor_limit_cannot_be_ignored() {
    let zygote = Zygote::start(Setup::new(Engine::Quickjs));
    let mut run = zygote.run_with(1, 256 << 20);
    let block_all = call(libc::SYS_rt_sigprocmask, &format!("{} o 0 8", libc::SIG_SETMASK));
    assert_eq!(run.attack(&block_all), Answer::Returned(0, 0));
    assert_eq!(run.attack("spin"), Answer::Killed(Signal::SIGKILL));
}

// 22, 76
#[test]
fn memory_ends_at_the_limit() {
    for engine in ENGINES {
        let zygote = Zygote::start(Setup::new(engine));
        let mut run = zygote.run_with(60, 64 << 20);
        let Answer::Returned(got, libc::ENOMEM) = run.attack("allocate 256") else {
            panic!("{engine}: not refused")
        };
        assert!((48..=66).contains(&got), "{engine}: {got} MiB of 64");
        // And mappings at the kernel's own limit, or at the address space where that is bounded.
        let Answer::Returned(count, libc::ENOMEM) = zygote.run().attack("split") else {
            panic!("{engine}: mappings without end")
        };
        assert!(count < 200_000, "{engine}: {count} mappings");
    }
}

// 74
#[test]
fn a_stopped_process_goes_on_and_can_be_killed() {
    let zygote = Zygote::start(Setup::new(Engine::V8));
    let mut run = zygote.run();
    // Waiting for ever in ppoll; a stop makes the kernel restart the call under another number.
    use std::io::Write as _;
    let wait = call(libc::SYS_ppoll, "0 0 0 0");
    run.socket.write_all(format!("{wait}\n").as_bytes()).unwrap();
    let sleep = Duration::from_millis(50);
    for _ in 0..5 {
        std::thread::sleep(sleep);
        run.signal(Signal::SIGSTOP);
        std::thread::sleep(sleep);
        run.signal(Signal::SIGCONT);
    }
    std::thread::sleep(sleep);
    assert!(
        fs::read_to_string(format!("/proc/{}/stat", run.pid)).unwrap().contains(") S "),
        "it must still wait"
    );
    run.signal(Signal::SIGSTOP);
    run.signal(Signal::SIGKILL);
    assert_eq!(run.reap(), Answer::Killed(Signal::SIGKILL));
    // The same with a time limit, where the restart needs its own system call.
    let mut run = zygote.run();
    run.socket.write_all(b"nap 400\n").unwrap();
    std::thread::sleep(sleep);
    run.signal(Signal::SIGSTOP);
    std::thread::sleep(sleep);
    run.signal(Signal::SIGCONT);
    assert_eq!(run.answer(), Ok("0 0".to_owned()));
}

/// A crash of the engine looks like one: not like an attack, and not like the end of a healthy process.
#[test]
fn crashes_keep_their_signals() {
    for engine in ENGINES {
        let zygote = Zygote::start(Setup::new(engine));
        assert_eq!(zygote.run().attack("abort"), Answer::Killed(Signal::SIGABRT), "{engine}");
        assert_eq!(zygote.run().attack("segv"), Answer::Killed(Signal::SIGSEGV), "{engine}");
        // A caught panic prints its message and leaves the process alive.
        let mut run = zygote.run();
        assert_eq!(run.attack("panic"), Answer::Returned(0, 0), "{engine}");
        assert_eq!(run.attack("tid"), Answer::Returned(1, 0), "{engine}: the C library's idea of the thread");
    }
}

// 80, 108
#[test]
fn crashing_runs_leave_nothing_behind() {
    let mut zygote = Zygote::start(Setup::new(Engine::Quickjs));
    let fds = |pid: i32| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let resident = |pid: i32| {
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
    };
    zygote.run().attack("segv");
    let (before_fds, before_pages) = (fds(zygote.pid()), resident(zygote.pid()));
    for _ in 0..500 {
        assert_eq!(zygote.run().attack("segv"), Answer::Killed(Signal::SIGSEGV));
    }
    assert_eq!(fds(zygote.pid()), before_fds);
    assert!(resident(zygote.pid()) <= before_pages + 16, "the zygote grows");
    assert_eq!(zygote.process.try_wait().unwrap(), None, "the zygote lives");
}

// 109, 110: the death signal follows the thread that started the zygote.
#[test]
fn the_end_of_the_parent_ends_both() {
    let (pid, mut run) = std::thread::spawn(|| {
        let zygote = Zygote::start(Setup::new(Engine::V8));
        let pid = zygote.pid();
        let run = zygote.run();
        std::mem::forget(zygote);
        (pid, run)
    })
    .join()
    .unwrap();
    assert_eq!(run.reap(), Answer::Killed(Signal::SIGKILL));
    let status = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None).unwrap();
    assert!(matches!(status, nix::sys::wait::WaitStatus::Signaled(_, Signal::SIGKILL, _)), "{status:?}");
}

#[test]
fn the_other_roles_are_locked_down_alike() {
    for engine in ENGINES {
        let (process, mut run) = start_strip(Setup::new(engine));
        assert!(run.layers.contains(Layer::Seccomp) && run.layers.contains(Layer::Descriptors));
        assert_eq!(
            run.attack(&call(libc::SYS_openat, "-100 s:/etc/passwd 0")),
            Answer::Returned(-1, libc::EACCES)
        );
        assert_eq!(run.attack(&call(libc::SYS_clone, "17")), SIGSYS, "{engine} strip");
        drop(process);

        let zygote = Zygote::start(Setup::new(engine).role("once"));
        let pid = zygote.pid();
        let mut run = zygote.run();
        assert_eq!(run.pid, pid, "once becomes the run's process");
        assert_eq!(run.attack(&call(libc::SYS_clone, "17")), SIGSYS, "{engine} once");
    }
}

/// The bounded error pipe is the only other thing a run can write to.
#[test]
fn panics_are_heard() {
    let mut zygote = Zygote::start(Setup::new(Engine::V8));
    let mut run = zygote.run();
    run.attack("panic");
    run.signal(Signal::SIGKILL);
    run.reap();
    zygote.process.kill().unwrap();
    let mut text = String::new();
    zygote.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("as told"), "{text}");
}

/// Without the allowlist an abstract socket of another process is still in another network namespace, or out of scope.
#[test]
fn abstract_sockets_are_elsewhere() {
    use std::os::linux::net::SocketAddrExt as _;
    let name = format!("codemode-lockdown-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let zygote = Zygote::start(Setup::new(Engine::V8).without(&[Layer::Seccomp, Layer::Rlimits]));
    if !zygote.in_force(Layer::Landlock) && !zygote.in_force(Layer::NetworkNamespace) {
        skip("neither Landlock nor a network namespace");
        return;
    }
    let mut run = zygote.run();
    let answer = run.attack(&format!("abstract {name}"));
    assert!(refused(answer, &[libc::ECONNREFUSED, libc::EPERM]), "{answer:?}");
}

/// With Landlock alone, an abstract socket is refused by its scope and not for its absence.
#[test]
fn abstract_sockets_are_out_of_scope() {
    use std::os::linux::net::SocketAddrExt as _;
    let name = format!("codemode-lockdown-scope-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let only = Setup::new(Engine::V8).only(&[
        Layer::Landlock,
        Layer::NoNewPrivileges,
        Layer::Capabilities,
        Layer::UidDrop,
    ]);
    let zygote = Zygote::start(only);
    if !zygote.in_force(Layer::Landlock) {
        skip(&zygote.report(Layer::Landlock).reason);
        return;
    }
    assert!(refused(zygote.run().attack(&format!("abstract {name}")), &[libc::EPERM]));
}

/// TCP towards the executor's own port, the cloud's metadata address and the like, with one layer at a time.
#[test]
fn the_network_is_out_of_reach_with_any_one_layer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let base = [Layer::NoNewPrivileges, Layer::Capabilities, Layer::UidDrop, Layer::UserNamespace];
    for (layer, errnos) in
        [(Layer::Landlock, &[libc::EACCES][..]), (Layer::NetworkNamespace, &[libc::ENETUNREACH])]
    {
        let zygote = Zygote::start(Setup::new(Engine::V8).only(&[&base[..], &[layer]].concat()));
        if !zygote.in_force(layer) {
            skip(&zygote.report(layer).reason);
            continue;
        }
        let answer = zygote.run().attack(&format!("tcp {port}"));
        assert!(refused(answer, errnos), "{layer}: {answer:?}");
    }
    // The same without either reaches it: the test would notice if the attack itself were broken.
    let zygote = Zygote::start(Setup::new(Engine::V8).only(&base));
    assert_eq!(zygote.run().attack(&format!("tcp {port}")), Answer::Returned(0, 0));
}
