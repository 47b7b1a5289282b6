//! The events of a session and their JSON shape, which is stable: fields are added, never renamed or removed.
//!
//! An event is one JSON object whose `type` names it (`tool/call`); its other fields stand beside it in camel case. An
//! event whose type this build does not know is kept as the JSON it is. The fixtures in `tests/shapes` show each shape.

mod payload;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

pub use self::payload::{
    ApprovalAnswered, ApprovalAsked, ApprovalOutcome, AssistantMessageEvent, CodeDispatch, CodeDispatchStart,
    Header, HeaderReason, RequestHeader, StepEnd, StepStart, ToolCall, ToolResult, TurnEnd, TurnOutcome,
    TurnStart, UserMessage,
};
use crate::json::Json;

/// An event of a type that this build does not know, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEvent {
    tag: String,
    raw: Json,
}

impl UnknownEvent {
    /// The whole event, its `type` included.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.raw
    }
}

impl Serialize for UnknownEvent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// Declares [`Event`] and the two directions between its variants and their tags from one table.
macro_rules! events {
    ($($(#[$doc:meta])* $tag:literal => $name:ident($payload:ty),)+) => {
        /// What happened.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(tag = "type")]
        #[non_exhaustive]
        pub enum Event {
            $($(#[$doc])* #[serde(rename = $tag)] $name($payload),)+
            /// An event of a later version. Only read, never appended.
            #[serde(untagged)]
            Unknown(UnknownEvent),
        }

        impl Event {
            /// The event's `type`.
            #[must_use]
            pub fn tag(&self) -> &str {
                match self {
                    $(Self::$name(_) => $tag,)+
                    Self::Unknown(event) => &event.tag,
                }
            }

            fn known(tag: &str, json: &str) -> Result<Option<Self>, serde_json::Error> {
                match tag {
                    $($tag => Ok(Some(Self::$name(serde_json::from_str(json)?))),)+
                    _ => Ok(None),
                }
            }
        }

        $(impl From<$payload> for Event {
            fn from(payload: $payload) -> Self {
                Self::$name(payload)
            }
        })+
    };
}

events! {
    /// A turn begins: the agent was woken.
    "turn/start" => TurnStart(TurnStart),
    /// The turn is over.
    "turn/end" => TurnEnd(TurnEnd),
    /// A step begins: one request to the model and the calls it asks for.
    "step/start" => StepStart(StepStart),
    /// The step is over: every call that it started has its result.
    "step/end" => StepEnd(StepEnd),
    /// The part of the model request that stays the same from step to step; logged when it changes.
    "request/header" => RequestHeader(RequestHeader),
    /// A message to the model, or a context that was queued for it.
    "user/message" => UserMessage(UserMessage),
    /// What the model answered.
    "assistant/message" => AssistantMessage(AssistantMessageEvent),
    /// A call of a tool by the model, before any policy.
    "tool/call" => ToolCall(ToolCall),
    /// The answer to a call.
    "tool/result" => ToolResult(ToolResult),
    /// A call of a tool by a running program, when it really starts and before any policy.
    "tool/code-dispatch-start" => CodeDispatchStart(CodeDispatchStart),
    /// The end of such a call.
    "tool/code-dispatch" => CodeDispatch(CodeDispatch),
    /// A call waits for somebody's approval.
    "approval/asked" => ApprovalAsked(ApprovalAsked),
    /// What became of the request for approval.
    "approval/answered" => ApprovalAnswered(ApprovalAnswered),
}

#[derive(Deserialize)]
struct Tag {
    r#type: String,
}

impl Event {
    /// Reads an event from its JSON.
    ///
    /// # Errors
    /// When it is not a JSON object with a `type`, or is of a known type and not in that type's shape.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        let tag = serde_json::from_str::<Tag>(json)?.r#type;
        match Self::known(&tag, json)? {
            Some(event) => Ok(event),
            None => Self::unknown(tag, json),
        }
    }

    /// Keeps an event as it is, whatever its type.
    pub(crate) fn raw(json: &str) -> Result<Self, serde_json::Error> {
        let tag = serde_json::from_str::<Tag>(json)?.r#type;
        Self::unknown(tag, json)
    }

    fn unknown(tag: String, json: &str) -> Result<Self, serde_json::Error> {
        Ok(Self::Unknown(UnknownEvent { tag, raw: Json::parse(json)? }))
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(raw.get()).map_err(serde::de::Error::custom)
    }
}
