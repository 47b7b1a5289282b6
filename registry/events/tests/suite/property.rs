//! Random events against a model of the invariants that looks at the whole history each time.

use codemode_events::{
    AppendError, CodeDispatch, CodeDispatchStart, Event, Header, HeaderReason, Json, RequestHeader,
};
use proptest::prelude::*;

use crate::events::{arguments, call, end, result, start, turn_end, turn_start, user};
use crate::stores::Fixture;

#[derive(Clone, Debug)]
enum Op {
    Append(Event),
    Resume,
}

fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![1 => Just(""), 12 => Just("a"), 12 => Just("b"), 6 => Just("c"), 6 => Just("d")]
        .prop_map(str::to_owned)
}

fn any_header() -> impl Strategy<Value = Event> {
    let system = proptest::option::of(prop_oneof![Just(String::new()), Just("x".to_owned())]);
    let tool = prop_oneof![Just("1"), Just("2")];
    let tool = tool.prop_map(|text| Json::parse(text).expect("a number is JSON"));
    let tools = proptest::option::of(proptest::collection::vec(tool, 0..3));
    let reason =
        prop_oneof![Just(HeaderReason::Initial), Just(HeaderReason::Resume), Just(HeaderReason::Change)];
    (system, tools, reason)
        .prop_map(|(system, tools, reason)| {
            let config = arguments();
            RequestHeader { header: Header { config, system, tools }, reason }.into()
        })
        .boxed()
}

fn any_op() -> impl Strategy<Value = Op> {
    let event = prop_oneof![
        2 => any_id().prop_map(|id| turn_start(&id)),
        2 => any_id().prop_map(|id| turn_end(&id)),
        1 => any_id().prop_map(|text| user(&text)),
        2 => any_id().prop_map(|id| call(&id)),
        4 => (0_u64..20, any_id()).prop_map(|(number, id)| result(number, &id)),
        6 => (any_id(), any_id(), any_id()).prop_map(|(root, parent, sub)| start(&root, &parent, &sub)),
        6 => (any_id(), any_id(), any_id()).prop_map(|(root, parent, sub)| end(&root, &parent, &sub)),
        3 => any_header(),
    ];
    prop_oneof![20 => event.prop_map(Op::Append), 1 => Just(Op::Resume)]
}

/// The log as the model has it.
#[derive(Default)]
struct Model {
    history: Vec<Event>,
    /// How long the history was when the log was last resumed.
    resumed_at: Option<usize>,
}

impl Model {
    fn accepts(&self, event: &Event) -> bool {
        match event {
            Event::TurnStart(event) => !event.turn_id.is_empty() && self.turn().is_none(),
            Event::TurnEnd(event) => {
                self.turn() == Some(event.turn_id.as_str())
                    && self.starts().all(|start| !self.is_open(&start.sub_call_id))
            }
            Event::ToolCall(event) => !event.call_id.is_empty(),
            Event::ToolResult(event) => {
                let index = usize::try_from(event.call).expect("numbers are small").wrapping_sub(1);
                let cited = matches!(self.history.get(index), Some(Event::ToolCall(call)) if call.call_id == event.message.call_id);
                let answers =
                    |earlier: &Event| matches!(earlier, Event::ToolResult(r) if r.call == event.call);
                cited && !self.history.iter().any(answers)
            }
            Event::CodeDispatchStart(event) => self.turn().is_some() && self.starts_well(event),
            Event::CodeDispatch(event) => self.turn().is_some() && self.ends_well(event),
            Event::RequestHeader(event) => self.header_is_due(event),
            _ => true,
        }
    }

    fn turn(&self) -> Option<&str> {
        self.history.iter().rev().find_map(|event| match event {
            Event::TurnStart(start) => Some(Some(start.turn_id.as_str())),
            Event::TurnEnd(_) => Some(None),
            _ => None,
        })?
    }

    fn starts(&self) -> impl Iterator<Item = &CodeDispatchStart> {
        self.history.iter().filter_map(|event| match event {
            Event::CodeDispatchStart(start) => Some(start),
            _ => None,
        })
    }

    fn is_open(&self, sub: &str) -> bool {
        let ended = |event: &&Event| matches!(event, Event::CodeDispatch(end) if end.sub_call_id == sub);
        let starts = self.starts().filter(|start| start.sub_call_id == sub).count();
        starts > self.history.iter().filter(ended).count()
    }

    fn starts_well(&self, event: &CodeDispatchStart) -> bool {
        let ids = [&event.sub_call_id, &event.parent_call_id, &event.root_call_id];
        let of_one_root = |earlier: &CodeDispatchStart| {
            let shared = [&earlier.sub_call_id, &earlier.parent_call_id, &earlier.root_call_id];
            earlier.root_call_id == event.root_call_id || !ids.iter().any(|id| shared.contains(id))
        };
        ids.iter().all(|id| !id.is_empty())
            && event.sub_call_id != event.parent_call_id
            && event.sub_call_id != event.root_call_id
            && self.starts().all(of_one_root)
            && !self.is_open(&event.sub_call_id)
    }

    fn ends_well(&self, event: &CodeDispatch) -> bool {
        let start = self.starts().filter(|start| start.sub_call_id == event.sub_call_id).last();
        let same = |start: &CodeDispatchStart| {
            start.root_call_id == event.root_call_id && start.parent_call_id == event.parent_call_id
        };
        self.is_open(&event.sub_call_id) && start.is_some_and(same)
    }

    fn header_is_due(&self, event: &RequestHeader) -> bool {
        let logged = |(index, event): (usize, &Event)| match event {
            Event::RequestHeader(logged) => Some((index, logged.header.clone())),
            _ => None,
        };
        let canonical =
            event.header.system.as_deref() != Some("") && event.header.tools.as_deref() != Some(&[]);
        let reason = match self.history.iter().enumerate().filter_map(logged).next_back() {
            None => Some(HeaderReason::Initial),
            Some((_, header)) if header == event.header => None,
            Some((index, _)) if self.resumed_at.is_some_and(|at| index < at) => Some(HeaderReason::Resume),
            Some(_) => Some(HeaderReason::Change),
        };
        canonical && reason == Some(event.reason)
    }
}

async fn run(ops: Vec<Op>) {
    let at = Fixture::memory();
    let mut log = at.log().await;
    let mut model = Model::default();
    for op in ops {
        match op {
            Op::Resume => {
                let before = (log.last(), log.open_work());
                log = at.resumed().await;
                assert_eq!((log.last(), log.open_work()), before, "read back");
                model.resumed_at = Some(model.history.len());
            }
            Op::Append(event) => {
                let before = (log.last(), log.open_work());
                let expected = model.accepts(&event);
                match log.append(event.clone()).await {
                    Ok(appended) => {
                        assert!(expected, "taken: {event:?}");
                        model.history.push(event);
                        assert_eq!(appended.seq, u64::try_from(model.history.len()).expect("there are few"));
                    }
                    Err(AppendError::Refused(refusal)) => {
                        assert!(!expected, "refused ({refusal}): {event:?}");
                        assert_eq!((log.last(), log.open_work()), before);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    let kept = log.read(codemode_events::Page::from(1)).await.expect("it reads");
    assert!(kept.iter().map(|entry| &entry.event).eq(&model.history));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn an_event_is_taken_when_the_model_takes_it_206_229_236(ops in proptest::collection::vec(any_op(), 0..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be made");
        runtime.block_on(run(ops));
    }
}
