//! The closed list of words in `Failure.detail`. A word is added with a minor version and never changes its meaning;
//! `README.md` explains each, and a test holds the two lists together.

use crate::executor_v1::FailureKind;

macro_rules! details {
    ($($(#[$doc:meta])* $name:ident = $word:literal in $kind:ident,)*) => {
        /// Machine-readable cause within a failure kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Detail {
            $($(#[$doc])* $name,)*
        }

        impl Detail {
            /// Every word there is.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word as it travels.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// The one kind that the word occurs with.
            #[must_use]
            pub const fn kind(self) -> FailureKind {
                match self {
                    $(Self::$name => FailureKind::$kind,)*
                }
            }
        }
    };
}

details! {
    /// The program was refused before it ran: it does not parse, or is not erasable TypeScript.
    Syntax = "syntax" in Exception,
    /// The program threw.
    Throw = "throw" in Exception,
    /// The budget `compute_ms` is spent.
    ComputeMs = "compute_ms" in Timeout,
    /// The budget `wall_ms` is spent.
    WallMs = "wall_ms" in Timeout,
    /// Nothing could ever wake the program: no call pending, no timer armed.
    Deadlock = "deadlock" in Timeout,
    /// The caller sent `Abort`.
    Caller = "caller" in Abort,
    /// The caller cancelled the RPC or went away.
    Cancelled = "cancelled" in Abort,
    /// The executor shut down.
    Drain = "drain" in Abort,
    /// The budget `heap_bytes` is spent.
    HeapBytes = "heap_bytes" in WorkerExit,
    /// A signal ended the process.
    Signal = "signal" in WorkerExit,
    /// The process exited by itself without an outcome.
    Exit = "exit" in WorkerExit,
    /// The process broke the rules of its channel.
    Protocol = "protocol" in WorkerExit,
    /// The budget `binding_calls` is spent.
    BindingCalls = "binding_calls" in WorkerExit,
    /// The budget `pending_calls` is spent.
    PendingCalls = "pending_calls" in WorkerExit,
    /// The budget `pending_argument_bytes` is spent.
    PendingArgumentBytes = "pending_argument_bytes" in WorkerExit,
    /// A value, an argument or a frame is longer than `frame_bytes_max`.
    FrameBytes = "frame_bytes" in WorkerExit,
    /// The process made a system call that its sandbox forbids.
    ForbiddenSyscall = "forbidden_syscall" in WorkerExit,
    /// The executor's own machinery failed; the program is not to blame.
    Infrastructure = "infrastructure" in WorkerExit,
    /// The completion value is not lossless JSON.
    Lossy = "lossy" in InvalidOutput,
    /// The budget `output_bytes` is spent.
    OutputBytes = "output_bytes" in OutputLimit,
}

impl Detail {
    /// The detail of that word, if there is one.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|detail| detail.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::Detail;

    #[test]
    fn every_word_is_explained_in_the_readme_under_its_kind() {
        let readme = include_str!("../README.md");
        for detail in Detail::ALL {
            let row = format!("| `{}` | `{}` |", detail.word(), detail.kind().as_str_name());
            assert!(readme.contains(&row), "README.md lacks the row {row}");
        }
        let rows = readme.lines().filter(|line| line.contains("| `FAILURE_KIND_")).count();
        assert_eq!(rows, Detail::ALL.len(), "README.md explains a word that does not exist");
    }

    #[test]
    fn words_are_unique_and_found_again() {
        for detail in Detail::ALL {
            assert_eq!(Detail::from_word(detail.word()), Some(*detail));
        }
        assert_eq!(Detail::from_word(""), None);
    }
}
