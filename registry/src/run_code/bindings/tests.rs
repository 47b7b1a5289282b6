//! Calls reach the lane in the program's order, however a runtime carries them out. Behaviours 136 and 140.

use std::time::Duration;

use codemode_client::{AbortSignal, RunId};
use futures::FutureExt;

use super::*;

struct Setup {
    gate: Arc<Gate>,
    lane: mpsc::UnboundedReceiver<Submission>,
    abort: AbortSignal,
}

fn setup() -> Setup {
    let (sender, lane) = mpsc::unbounded_channel();
    let abort = AbortSignal::new();
    Setup { gate: Gate::new(abort.clone().into(), sender), lane, abort }
}

impl Setup {
    fn announce(&self, call_id: u64) {
        self.gate.on_event(RunEvent::CallStarted { call_id, global: GLOBAL, name: "t", argument_bytes: 2 });
    }

    fn settle(&self, call_id: u64) {
        let (result, elapsed) = (Err("unknown"), Duration::ZERO);
        self.gate.on_event(RunEvent::CallSettled { call_id, global: GLOBAL, name: "t", result, elapsed });
    }

    /// Begins to carry a call out; its future is polled once and kept.
    fn carry_out(
        &self,
        call_id: u64,
        arguments: &str,
    ) -> futures::future::BoxFuture<'static, Result<JsonText, BindingError>> {
        let call = CallContext {
            run_id: RunId::random(),
            call_id,
            global: GLOBAL.into(),
            name: format!("t{call_id}").into(),
            cancellation: tokio_util::sync::CancellationToken::new(),
            deadline: None,
        };
        let arguments = JsonText::parse(arguments).expect("well-formed");
        let mut future = Arc::clone(&self.gate).carry_out(arguments, call).boxed();
        match (&mut future).now_or_never() {
            None => future,
            Some(done) => futures::future::ready(done).boxed(),
        }
    }

    fn arrived(&mut self) -> Vec<(u64, String)> {
        std::iter::from_fn(|| self.lane.try_recv().ok())
            .map(|call| (call.number, call.name.to_string()))
            .collect()
    }
}

#[test]
fn the_order_is_the_programs_136() {
    let mut setup = setup();
    (1..=3).for_each(|call_id| setup.announce(call_id));
    let _third = setup.carry_out(3, "{}");
    assert_eq!(setup.arrived(), []);
    let _first = setup.carry_out(1, "{}");
    assert_eq!(setup.arrived(), [(1, "t1".to_owned())]);
    let _second = setup.carry_out(2, "{}");
    assert_eq!(setup.arrived(), [(2, "t2".to_owned()), (3, "t3".to_owned())]);
}

#[test]
fn who_never_comes_holds_up_nobody() {
    let mut setup = setup();
    (1..=3).for_each(|call_id| setup.announce(call_id));
    let _third = setup.carry_out(3, "{}");
    // The first has lossy arguments, the second is of a function that nobody has.
    let refused = setup.carry_out(1, "-0").now_or_never().expect("at once").expect_err("refused");
    assert!(refused.message.contains("must be lossless JSON"), "{refused}");
    setup.settle(2);
    assert_eq!(setup.arrived(), [(1, "t3".to_owned())]);
}

#[test]
fn without_announcements_calls_come_as_they_come() {
    let mut setup = setup();
    let _calls = [setup.carry_out(2, "{}"), setup.carry_out(1, "{}")];
    assert_eq!(setup.arrived(), [(1, "t2".to_owned()), (2, "t1".to_owned())]);
}

#[test]
fn nobody_comes_in_when_the_run_is_over_175() {
    let mut setup = setup();
    (1..=2).for_each(|call_id| setup.announce(call_id));
    let waits = setup.carry_out(2, "{}");
    setup.abort.abort("stop");
    let late = setup.carry_out(1, "{}").now_or_never().expect("at once").expect_err("refused");
    assert_eq!(late.message, "run_code run is over (stop); t1 not dispatched");
    setup.gate.close();
    drop(setup.arrived());
    let abandoned = waits.now_or_never().expect("at once").expect_err("abandoned");
    assert_eq!(abandoned.message, "run_code run is over (stop); t2 tool call abandoned");
}
