//! A tool's body and a hook that a harness carries out.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use codemode_client::JsonText;
use codemode_proto::registry_v1 as proto;
use proto::hook_answer::Answer as HookAnswer;
use proto::hook_question::Question as Asked;
use proto::registry_message::Message;
use proto::tool_answer::Result as ToolResult;

use crate::hook::HookError;
use crate::pipeline::{Call, Decision, DispatchLogHook, Guard, PostExecute, PostVerdict, PreExecute};
use crate::policy::Glob;
use crate::service::harness::{Answer, Expected, Harness, Question};
use crate::service::{content, convert};
use crate::tool::{Arguments, BodyError, CallContext, CallResult, Content, ToolBody};

/// Has a harness carry out calls of a tool.
#[derive(Debug)]
pub(super) struct RemoteBody {
    pub(super) harness: Arc<Harness>,
}

#[async_trait]
impl ToolBody for RemoteBody {
    async fn call(&self, _: Arguments, context: CallContext) -> Result<JsonText, BodyError> {
        let call = convert::call_info(context.call());
        let message = |id| Message::Call(proto::ToolCall { id, call: Some(call) });
        let mut question = self.harness.pose(Expected::Tool, message).map_err(failed)?;
        let answer = tokio::select! {
            answer = question.answer() => answer,
            reason = context.signal().aborted() => {
                question.cancel(reason);
                question.answer_within(self.harness.cancel_grace()).await
            }
        };
        match answer.map_err(failed)? {
            Answer::Tool(answer) => self.taken(question.id(), answer, &context),
            Answer::Hook(_) | Answer::Approval(_) => Err(BodyError::new("the harness gave no tool's answer")),
        }
    }
}

impl RemoteBody {
    fn taken(
        &self,
        id: u64,
        answer: proto::ToolAnswer,
        context: &CallContext,
    ) -> Result<JsonText, BodyError> {
        let unreadable = |reason: String| {
            self.harness.refuse_answer(id, reason.as_str());
            BodyError::new(format!(
                "harness \"{}\" gave an answer that cannot be read: {reason}",
                self.harness.name()
            ))
        };
        for message in content::contexts(answer.contexts, self.harness.name()).map_err(unreadable)? {
            context.defer_context(message);
        }
        if answer.concludes_turn {
            context.conclude_turn();
        }
        match answer.result {
            Some(ToolResult::ValueJson(json)) => content::value(json).map_err(unreadable),
            Some(ToolResult::Failure(failure)) => Err(BodyError::new(failure.message)),
            None => Err(unreadable("neither a value nor a failure".to_owned())),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> BodyError {
    BodyError::new(error.to_string())
}

/// Asks a harness's hook.
#[derive(Debug)]
pub(super) struct RemoteHook {
    pub(super) name: String,
    pub(super) harness: Arc<Harness>,
    /// Tools whose calls it sees; all, if there are none.
    pub(super) tools: Vec<Glob>,
    pub(super) deadline: Duration,
    /// Whether a call fails when there is no answer.
    pub(super) denies: bool,
}

impl RemoteHook {
    fn sees(&self, call: &Call) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|glob| glob.matches(call.name()))
    }

    /// Asks; nothing where the hook has no say.
    async fn ask(
        &self,
        call: &Call,
        expected: Expected,
        asked: Asked,
    ) -> Result<Option<(u64, HookAnswer)>, HookError> {
        let info = convert::call_info(call);
        let hook = self.name.clone();
        let message =
            |id| Message::Hook(proto::HookQuestion { id, hook, call: Some(info), question: Some(asked) });
        let answer = match self.harness.pose(expected, message) {
            Ok(mut question) => self.answered(&mut question).await,
            Err(error) => Err(format!("hook \"{}\" cannot be asked: {error}", self.name)),
        };
        match answer {
            Ok((_, HookAnswer::Failure(message))) => Err(HookError(message)),
            Ok(answer) => Ok(Some(answer)),
            Err(reason) if self.denies => Err(HookError(reason)),
            Err(reason) => {
                tracing::warn!(call = call.call_id(), reason, "a hook had no say");
                Ok(None)
            }
        }
    }

    async fn answered(&self, question: &mut Question) -> Result<(u64, HookAnswer), String> {
        match question.answer_within(self.deadline).await {
            Ok(Answer::Hook(answer)) => Ok((question.id(), answer)),
            Ok(Answer::Tool(_) | Answer::Approval(_)) => {
                Err(format!("hook \"{}\" gave no hook's answer", self.name))
            }
            Err(super::Unanswered::Late { within, .. }) => {
                Err(format!("hook \"{}\" did not answer within {}ms", self.name, within.as_millis()))
            }
            Err(error) => Err(format!("hook \"{}\" did not answer: {error}", self.name)),
        }
    }

    fn unreadable(&self, id: u64, reason: &str) -> HookError {
        self.harness.refuse_answer(id, reason);
        HookError(format!("hook \"{}\" gave an answer that cannot be read: {reason}", self.name))
    }
}

#[async_trait]
impl PreExecute for RemoteHook {
    async fn decide(&self, call: &Call, current: Decision) -> Result<Decision, HookError> {
        if !self.sees(call) {
            return Ok(current);
        }
        let asked = Asked::PreExecute(convert::to_decision(&current));
        match self.ask(call, Expected::Decision, asked).await? {
            Some((id, HookAnswer::Decision(decision))) => {
                convert::from_decision(decision).map_err(|reason| self.unreadable(id, &reason))
            }
            _ => Ok(current),
        }
    }
}

#[async_trait]
impl Guard for RemoteHook {
    async fn check(&self, call: &Call) -> Result<Option<String>, HookError> {
        if !self.sees(call) {
            return Ok(None);
        }
        match self.ask(call, Expected::Objection, Asked::Guard(proto::GuardQuestion {})).await? {
            Some((_, HookAnswer::Objection(reason))) => Ok(Some(reason).filter(|reason| !reason.is_empty())),
            _ => Ok(None),
        }
    }
}

#[async_trait]
impl PostExecute for RemoteHook {
    async fn review(
        &self,
        call: &Call,
        result: &CallResult,
        current: PostVerdict,
    ) -> Result<PostVerdict, HookError> {
        if !self.sees(call) {
            return Ok(current);
        }
        let asked = Asked::PostExecute(proto::PostExecuteQuestion {
            result: Some(content::to_result(call.call_id(), result)),
            current: Some(convert::to_verdict(&current)),
        });
        match self.ask(call, Expected::Verdict, asked).await? {
            Some((id, HookAnswer::Verdict(verdict))) => convert::from_verdict(verdict, self.harness.name())
                .map_err(|reason| self.unreadable(id, &reason)),
            _ => Ok(current),
        }
    }
}

#[async_trait]
impl DispatchLogHook for RemoteHook {
    async fn content(&self, call: &Call, shown: &[Content]) -> Result<Option<Vec<Content>>, HookError> {
        if !self.sees(call) {
            return Ok(None);
        }
        match self.ask(call, Expected::Content, Asked::DispatchLogJson(content::to_json(shown))).await? {
            Some((_, HookAnswer::ContentJson(json))) if json.is_empty() => Ok(None),
            Some((id, HookAnswer::ContentJson(json))) => {
                content::from_json(&json).map(Some).map_err(|reason| self.unreadable(id, &reason))
            }
            _ => Ok(None),
        }
    }
}
