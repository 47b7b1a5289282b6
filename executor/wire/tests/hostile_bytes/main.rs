//! A bounded, repeatable fuzzing run that needs no nightly compiler: seeds from `tests/corpus` and from encoded
//! messages, mutated by a seeded generator. `CODEMODE_FUZZ_ITERATIONS` makes it longer, `CODEMODE_FUZZ_SEED` different;
//! a failure prints both and the input. The libFuzzer targets in `executor/wire/fuzz` call the same functions.

mod allocation;
mod targets;

use std::path::Path;

use codemode_wire::control::{BootRequest, ForkRequest, ZygoteFrame};
use codemode_wire::message::{ChildFailureKind, ChildFrame, HostFrame, NamespaceTable, ProgramSpec, Shape};
use codemode_wire::strip::{StripAnswer, StripHello, StripRequest};
use codemode_wire::{Layer, LayerReport, LayerSet, LayerState};

/// Inputs tried of each target unless the environment says otherwise.
const ITERATIONS: u64 = 100_000;
/// Longest input, bytes.
const INPUT_BYTES_MAX: usize = 4096;
/// What reading an input may hold allocated at most, for each of its bytes. The worst honest ratio is a list of empty
/// namespaces: nine bytes each on the wire, a hundred in memory, twice, in a vector that is being doubled.
const HEAP_BYTES_PER_BYTE: usize = 48;
/// What reading may allocate whatever the input, bytes: buffers that begin with a fixed size, messages of errors.
const HEAP_BYTES_FIXED: usize = 32 * 1024;

/// A small generator (splitmix64): the same numbers for the same seed on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`, which must not be 0.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// Numbers that lengths and counts are most likely to be confused by.
const NUMBERS: [u32; 10] = [0, 1, 4, 0x7f, 0xff, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX];
/// Pieces that JSON is made of.
const PIECES: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud83d",
    b"\\ude00",
    b"-0",
    b"1e400",
    b"9007199254740993",
    b"null",
    b"\"a\":",
    b"\"\\u0061\":",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"\0",
    b"\n",
    b".0",
    b"E-999",
    b"[[[[[[[[",
];

fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(input.len() + 1);
        match random.below(9) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.byte(),
            2 => input.insert(at, random.byte()),
            3 => {
                let end = at + random.below(input.len() - at + 1);
                input.drain(at..end);
            }
            4 => {
                let end = at + random.below(input.len() - at + 1);
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            5 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let end = (at + 4).min(input.len());
                input.splice(at..end, number);
            }
            6 => {
                input.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied());
            }
            7 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => input.truncate(at),
        }
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

/// Names the input when the target panics.
struct Tell<'a> {
    target: &'a str,
    seed: u64,
    iteration: u64,
    input: &'a [u8],
}

impl Drop for Tell<'_> {
    #[expect(clippy::print_stderr, reason = "a failing test says what it failed on")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { target, seed, iteration, input } = self;
            let text = input.escape_ascii();
            eprintln!("target `{target}`, seed {seed}, iteration {iteration}, input b\"{text}\"");
        }
    }
}

fn number_from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("`{name}` must be a number")))
}

fn check_one(target: impl Fn(&[u8]), tell: &Tell<'_>) {
    let peak = allocation::peak_of(|| target(tell.input));
    let bound = HEAP_BYTES_FIXED + HEAP_BYTES_PER_BYTE * tell.input.len();
    assert!(peak <= bound, "{peak} bytes allocated at once for {} of input", tell.input.len());
}

fn run(name: &str, target: impl Fn(&[u8]), mut corpus: Vec<Vec<u8>>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus in {}", folder.display());
    corpus.extend(files.iter().map(|file| std::fs::read(file).expect("a readable file")));

    let seed = number_from_environment("CODEMODE_FUZZ_SEED", 1);
    let iterations = number_from_environment("CODEMODE_FUZZ_ITERATIONS", ITERATIONS);
    for input in &corpus {
        check_one(&target, &Tell { target: name, seed, iteration: 0, input });
    }
    for iteration in 1..=iterations {
        let input = mutate(&mut Random(seed.wrapping_mul(iterations).wrapping_add(iteration)), &corpus);
        check_one(&target, &Tell { target: name, seed, iteration, input: &input });
    }
}

/// One message of each kind.
fn messages() -> Vec<Vec<u8>> {
    let layers = LayerSet::EMPTY.with(Layer::Seccomp).with(Layer::Landlock);
    let program = ProgramSpec {
        source: "return await tools.echo({a: 1})".to_owned(),
        shape: Shape::Body,
        namespaces: vec![NamespaceTable {
            global: "tools".to_owned(),
            functions: vec!["echo".to_owned(), "__proto__".to_owned(), String::new()],
            error_class: Some(("ToolCallError".to_owned(), "toolName".to_owned())),
        }],
        output_bytes: 1 << 20,
        heap_bytes: 1 << 27,
        argument_bytes_max: 1 << 20,
        log_entry_bytes_max: 1 << 20,
        undefined_omit: true,
        seed: [7; 16],
    };
    vec![
        ChildFrame::Hello { version: 1, nonce: *b"0123456789abcdef", layers }.encode(),
        ChildFrame::Fault { step: "seccomp", errno: 22 }.encode(),
        ChildFrame::Log { text: br#""hello \ud83d""# }.encode(),
        ChildFrame::Call { id: 1, namespace: 0, function: 2, args: br#"{"a":[1,2,{"b":null}]}"# }.encode(),
        ChildFrame::Completed { value: None }.encode(),
        ChildFrame::Completed { value: Some(b"[1.5,\"x\"]") }.encode(),
        ChildFrame::Failed {
            kind: ChildFailureKind::Exception,
            message: br#""Error: kaboom""#,
            name: "Error",
            line: 3,
            column: 7,
        }
        .encode(),
        ChildFrame::Stalled.encode(),
        ChildFrame::HeapExhausted { used: 1 << 27, limit: 1 << 27 }.encode(),
        HostFrame::Program(program).encode(),
        HostFrame::Reply { id: 1, value: b"null" }.encode(),
        HostFrame::ReplyError { id: 1, message: "no" }.encode(),
        StripHello::Ready { version: 2, layers: LayerSet::EMPTY.with(Layer::Seccomp) }.encode(),
        StripHello::Fault { step: "seccomp".to_owned(), errno: 22 }.encode(),
        StripRequest { id: 9, program: "return 1 as number" }.encode(),
        StripAnswer::Stripped {
            id: 9,
            shape: Shape::Function,
            source: "() => 1".to_owned(),
            hints: vec!["called".to_owned(), String::new()],
        }
        .encode(),
        StripAnswer::Refused { id: 9, message: "`enum`".to_owned(), line: 1, column: 1 }.encode(),
    ]
}

fn packets() -> Vec<Vec<u8>> {
    let report = |layer, state| LayerReport { layer, state, reason: "kernel".to_owned() };
    vec![
        ZygoteFrame::Ready {
            version: 1,
            engine: "v8".to_owned(),
            engine_version: "14".to_owned(),
            jit: true,
            layers: vec![
                report(Layer::Environment, LayerState::InForce),
                report(Layer::Cgroup, LayerState::Unavailable),
            ],
            globals: vec!["Array".to_owned(), "console".to_owned(), String::new()],
        }
        .encode(),
        ZygoteFrame::Forked { pid: 4242 }.encode(),
        ZygoteFrame::ForkFailed { step: "clone".to_owned(), errno: 11 }.encode(),
        ZygoteFrame::Fault { step: "boot".to_owned(), errno: 0 }.encode(),
        ForkRequest { nonce: [3; 16], cpu_seconds: 61, data_bytes: 1 << 30, ahead: true }.encode(),
        BootRequest { layers_off: LayerSet::EMPTY, jitless: false, frame_bytes_max: 1 << 27, uid: 65534 }
            .encode(),
    ]
}

#[test]
fn hostile_streams() {
    let one_by_one = messages().into_iter().map(|message| [&[255], message.as_slice()].concat());
    let all = [vec![3], messages().concat()].concat();
    run("stream", targets::stream, one_by_one.chain([all]).collect());
}

#[test]
fn hostile_packets() {
    run("packet", targets::packet, packets());
}

#[test]
fn hostile_json() {
    run("json", targets::json_text, Vec::new());
}

/// A count on the wire may not make anybody reserve for it, and small things may not become large ones.
#[test]
fn lists_of_little_things_stay_in_proportion() {
    let mut program = codemode_wire::Writer::new(1, 0);
    program.str("").u8(0).u32(u32::MAX);
    for _ in 0..100_000 {
        program.str("").u32(0).flag(false);
    }
    let mut stripped = codemode_wire::Writer::new(2, 0);
    stripped.u64(1).u8(0).str("").u32(u32::MAX).raw(&[0; 400_000]);
    for bytes in [program.finish(), stripped.finish()] {
        let mut decoder = codemode_wire::Decoder::new(u32::MAX);
        decoder.buffer().extend_from_slice(&bytes);
        let frame = decoder.next_frame().expect("a good header").expect("a whole frame");
        let peak = allocation::peak_of(|| {
            assert!(HostFrame::decode(frame).is_err() && StripAnswer::decode(frame).is_err());
        });
        assert!(peak <= HEAP_BYTES_PER_BYTE * bytes.len(), "{peak} bytes for {}", bytes.len());
    }
}

/// The checker's own memory on texts made to cost it: keys, escaped keys, levels.
#[test]
fn checking_json_stays_in_proportion() {
    let distinct: String = (0..200_000).map(|n| format!("\"{n:x}\":0,")).collect();
    let escaped: String = (0..100_000).map(|n| format!("\"\\u0061{n:x}\":0,")).collect();
    for text in [
        format!("{{{distinct}\"z\":0}}"),
        format!("{{{escaped}\"z\":0}}"),
        "[".repeat(100_000),
        "{\"\":".repeat(100_000),
        "9".repeat(1_000_000),
        format!("1.{}", "1".repeat(1_000_000)),
    ] {
        let peak = allocation::peak_of(|| {
            let _ = codemode_wire::json::check(text.as_bytes());
        });
        assert!(peak <= HEAP_BYTES_PER_BYTE * text.len(), "{peak} bytes for {}", text.len());
    }
}
