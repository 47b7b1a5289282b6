//! The lane against a plain model, under any order of arrival and settlement. Behaviours 136 to 145, 227 to 230.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Something that happens to a lane from outside.
#[derive(Clone, Debug)]
enum Happening {
    /// A call comes.
    Submit(bool),
    /// Of the running bodies, this one (modulo their number) settles; a failure looks the same to the lane.
    Settle(usize),
    /// The run is over: nothing starts any more.
    Stop,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => any::<bool>().prop_map(Happening::Submit),
        5 => any::<usize>().prop_map(Happening::Settle),
        1 => Just(Happening::Stop),
    ]
}

/// What the lane did, told by the model's own book-keeping.
#[derive(Default)]
struct Book {
    parallel: BTreeMap<Ticket, bool>,
    running: Vec<Ticket>,
    started: Vec<Ticket>,
    committed: Vec<Ticket>,
    abandoned: Vec<Ticket>,
}

impl Book {
    fn uncommitted(&self) -> Vec<Ticket> {
        self.started.iter().copied().filter(|ticket| !self.committed.contains(ticket)).collect()
    }

    fn start(&mut self, ticket: Ticket, running_max: usize) {
        let parallel = self.parallel[&ticket];
        let open = self.uncommitted();
        if parallel {
            assert!(
                open.iter().all(|other| self.parallel[other]),
                "a parallel call started beside an exclusive one"
            );
            assert!(self.running.len() < running_max, "too many bodies");
        } else {
            assert!(open.is_empty(), "an exclusive call is not alone");
        }
        self.running.push(ticket);
        self.started.push(ticket);
    }

    fn commit(&mut self, ticket: Ticket) {
        assert!(!self.running.contains(&ticket), "committed before its body settled");
        assert_eq!(self.uncommitted().first(), Some(&ticket), "committed out of order");
        self.committed.push(ticket);
    }
}

/// Takes steps until there is none, as the driver does.
fn run_dry(lane: &mut Lane, book: &mut Book, running_max: usize) {
    loop {
        let parallel = &book.parallel;
        match lane.next(|ticket| if parallel[&ticket] { Class::Parallel } else { Class::Exclusive }) {
            Step::Start(ticket) => book.start(ticket, running_max),
            Step::Commit(ticket) => book.commit(ticket),
            Step::Sleep => return,
        }
    }
}

/// Whether the model says that something could be done.
fn is_stuck(book: &Book, running_max: usize) -> bool {
    let oldest_settled = book.uncommitted().first().is_some_and(|oldest| !book.running.contains(oldest));
    let next = book
        .parallel
        .keys()
        .find(|ticket| !book.started.contains(ticket) && !book.abandoned.contains(ticket));
    let open = book.uncommitted();
    let could_start = next.is_some_and(|next| {
        if book.parallel[next] {
            open.iter().all(|other| book.parallel[other]) && book.running.len() < running_max
        } else {
            open.is_empty()
        }
    });
    oldest_settled || could_start
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_lane_does_what_the_model_says(running_max in 1_usize..5, happenings in prop::collection::vec(happening(), 0..60)) {
        let (mut lane, mut book) = (Lane::new(running_max), Book::default());
        let mut stopped = false;
        for happening in happenings {
            match happening {
                Happening::Submit(parallel) if !stopped => {
                    let ticket = book.parallel.len() as Ticket;
                    book.parallel.insert(ticket, parallel);
                    lane.submit(ticket);
                }
                Happening::Submit(_) => {}
                Happening::Settle(which) if !book.running.is_empty() => {
                    let ticket = book.running.remove(which % book.running.len());
                    lane.settle(ticket);
                    // A second word of the same body changes nothing.
                    lane.settle(ticket);
                }
                Happening::Settle(_) => {}
                Happening::Stop => {
                    stopped = true;
                    book.abandoned.extend(lane.abandon());
                }
            }
            run_dry(&mut lane, &mut book, running_max);
            prop_assert!(!is_stuck(&book, running_max), "the lane sleeps with work at hand");
        }
        while let Some(ticket) = book.running.pop() {
            lane.settle(ticket);
            run_dry(&mut lane, &mut book, running_max);
        }
        prop_assert!(lane.is_empty());
        prop_assert_eq!(book.started.clone(), book.committed.clone());
        let mut all = book.started.clone();
        all.extend(&book.abandoned);
        prop_assert_eq!(all, book.parallel.keys().copied().collect::<Vec<_>>(), "lost or doubled");
    }
}
