"""A client of the codemode executor for asyncio, from the proto alone.

Everything it knows of the service it reads from `codemode/executor/v1/executor.proto` when it is imported: no generated
code is kept. Copy this file and the proto, install `requirements.txt`, and any Python host can run programs:

    tools = Namespace("tools", {"add": add}, error_class=("ToolCallError", "toolName"))
    async with Client("unix:/run/codemode/executor.sock") as client:
        outcome = await client.run("return await tools.add([1, 2])", [tools])

A program's failure is a value, `Outcome.failure`. `RunError` means misuse or a service that was not there; where its
`started` is true the program may have acted, so never run it again without thought.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import pathlib
import sys
from typing import Any, Awaitable, Callable, Mapping, Optional, Sequence

import grpc

PROTO = "codemode/executor/v1/executor.proto"


def _load():
    """Messages and service of the proto, found in CODEMODE_PROTO_DIR, beside this file, or in the repository's `proto`."""
    here = pathlib.Path(__file__).resolve()
    candidates = [os.environ.get("CODEMODE_PROTO_DIR"), here.parent, *(up / "proto" for up in here.parents)]
    for directory in filter(None, candidates):
        if (pathlib.Path(directory) / PROTO).is_file():
            sys.path.insert(0, str(directory))
            try:
                return grpc.protos_and_services(PROTO)
            finally:
                sys.path.remove(str(directory))
    raise ImportError(f"cannot find {PROTO}; set CODEMODE_PROTO_DIR to the folder that holds it")


pb, services = _load()

UNDEFINED = type("Undefined", (), {"__repr__": lambda self: "UNDEFINED", "__bool__": lambda self: False})()
"""What `Outcome.value` is where there is none; `None` is JSON's null, which is a value."""

Tool = Callable[[Any], Awaitable[Any]]
"""An async function of one JSON value to another. Raise `ToolError` to fail the call."""


class ToolError(Exception):
    """A failure whose message the program sees."""


class RunError(Exception):
    """There is no outcome: misuse, overload, or a broken connection or service."""

    def __init__(self, code: grpc.StatusCode, message: str, started: bool):
        super().__init__(f"{code.name}: {message}")
        self.code, self.message, self.started = code, message, started


@dataclasses.dataclass(frozen=True)
class Namespace:
    """One global object of async functions, and the class that their failures are thrown as: (name, property)."""

    name: str
    functions: Mapping[str, Tool]
    error_class: Optional[tuple[str, str]] = None


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a program did not complete. `kind` is one of exception, timeout, abort, worker-exit, invalid-output,
    output-limit; what does not apply is None or empty."""

    kind: str
    message: str
    detail: str = ""
    limit: Optional[int] = None
    used: Optional[int] = None
    signal: Optional[int] = None
    line: Optional[int] = None
    column: Optional[int] = None
    excerpt: str = ""
    error_name: str = ""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run came to; its process is gone by then."""

    run_id: str
    value: Any
    logs: list[str]
    failure: Optional[Failure]
    hints: list[str]
    usage: Any
    """The proto's `Usage`: cpu_us, wall_us, peak_memory_bytes, binding_calls, output_bytes, layers, phases."""


class Client:
    """One connection to an executor at `unix:/path`, `http://host:port` or `https://host:port`."""

    def __init__(self, address: str, *, token: Optional[str] = None, ca_pem: Optional[bytes] = None):
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        if address.startswith("unix:"):
            # gRPC's C core would send the socket's path as the authority, which strict HTTP/2 servers refuse.
            options.append(("grpc.default_authority", "localhost"))
        if address.startswith("https://"):
            credentials = grpc.ssl_channel_credentials(root_certificates=ca_pem)
            self._channel = grpc.aio.secure_channel(address[len("https://") :], credentials, options)
        else:
            target = address[len("http://") :] if address.startswith("http://") else address
            self._channel = grpc.aio.insecure_channel(target, options)
        self._metadata = [("authorization", f"Bearer {token}")] if token else []
        self._stub = services.ExecutorStub(self._channel)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_exc_info) -> None:
        await self._channel.close()

    async def describe(self, timeout: float = 5.0):
        """The proto's `DescribeResponse`: engines, budgets, limits, sandbox layers."""
        try:
            return await self._stub.Describe(pb.DescribeRequest(), timeout=timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise RunError(error.code(), error.details() or "", started=False) from error

    async def run(
        self,
        program: str,
        namespaces: Sequence[Namespace] = (),
        *,
        budgets: Optional[Mapping[str, int]] = None,
        engine: str = "",
        required_layers: Sequence[str] = (),
        on_log: Optional[Callable[[str], None]] = None,
        abort: Optional["asyncio.Future[str]"] = None,
    ) -> Outcome:
        """Runs one program to its outcome. Calls of tools run side by side; those in flight when the run ends are
        cancelled. `abort` ends the run when it resolves, with its result as the reason; cancelling the task that awaits
        this aborts the run and waits for nothing."""
        start = pb.StartRun(
            program=program,
            namespaces=[_namespace(namespace) for namespace in namespaces],
            budgets=pb.Budgets(**budgets) if budgets else None,
            engine=engine,
            required_layers=required_layers,
        )
        run = _Run(namespaces, on_log)
        run.send(pb.RunRequest(start=start))
        if abort is not None:
            run.spawn(run.abort_when(abort))
        stream = self._stub.Run(run.requests(), metadata=self._metadata)
        try:
            return await run.drive(stream)
        except grpc.aio.AioRpcError as error:
            raise RunError(error.code(), error.details() or "", run.started) from error
        finally:
            # Without effect on a stream that has ended; on any other it aborts the run.
            stream.cancel()
            await run.end()


class _Run:
    """One run's state: what is to be sent, and the calls in flight."""

    def __init__(self, namespaces: Sequence[Namespace], on_log: Optional[Callable[[str], None]]):
        self._functions = {namespace.name: dict(namespace.functions) for namespace in namespaces}
        self._on_log = on_log
        self._outbound: "asyncio.Queue[Any]" = asyncio.Queue()
        self._tasks: set[asyncio.Task] = set()
        self._run_id = ""

    @property
    def started(self) -> bool:
        return bool(self._run_id)

    def send(self, request) -> None:
        self._outbound.put_nowait(request)

    async def requests(self):
        while True:
            yield await self._outbound.get()

    def spawn(self, coroutine) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def abort_when(self, abort: "asyncio.Future[str]") -> None:
        # Shielded: the caller's future outlives this run.
        reason = await asyncio.shield(abort)
        self.send(pb.RunRequest(abort=pb.Abort(reason=reason)))

    async def drive(self, stream) -> Outcome:
        async for response in stream:
            which = response.WhichOneof("message")
            if which == "started":
                self._run_id = response.started.run_id
            elif which == "log" and self._on_log:
                self._on_log(response.log.text)
            elif which == "call":
                self.spawn(self._answer(response.call))
            elif which == "outcome":
                return _outcome(self._run_id, response.outcome)
        raise RunError(grpc.StatusCode.INTERNAL, "the stream ended without an outcome", self.started)

    async def _answer(self, call) -> None:
        try:
            function = self._functions.get(getattr(call, "global"), {}).get(call.name)
            if function is None:
                raise ToolError(f'unknown binding "{getattr(call, "global")}.{call.name}"')
            value = await function(json.loads(call.args_json))
            # Python would write NaN and the infinities, which are no JSON.
            text = json.dumps(value, allow_nan=False, separators=(",", ":"))
            reply = pb.BindingReply(id=call.id, value_json=text.encode())
        except ToolError as error:
            reply = pb.BindingReply(id=call.id, error=pb.BindingError(message=str(error)))
        except Exception as error:  # A fault of a tool fails its call, never the host.
            reply = pb.BindingReply(id=call.id, error=pb.BindingError(message=f"{type(error).__name__}: {error}"))
        self.send(pb.RunRequest(reply=reply))

    async def end(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _namespace(namespace: Namespace):
    message = pb.Namespace(functions=list(namespace.functions), **{"global": namespace.name})
    if namespace.error_class:
        name, member = namespace.error_class
        message.error_class.CopyFrom(pb.ErrorClass(name=name, member_name_property=member))
    return message


def _outcome(run_id: str, outcome) -> Outcome:
    return Outcome(
        run_id=run_id,
        value=json.loads(outcome.value_json) if outcome.HasField("value_json") else UNDEFINED,
        logs=list(outcome.logs),
        failure=_failure(outcome.failure) if outcome.HasField("failure") else None,
        hints=list(outcome.hints),
        usage=outcome.usage,
    )


def _failure(failure) -> Failure:
    def optional(message, field):
        return getattr(message, field) if message.HasField(field) else None

    placed = failure.HasField("position")
    return Failure(
        kind=pb.FailureKind.Name(failure.kind).removeprefix("FAILURE_KIND_").lower().replace("_", "-"),
        message=failure.message,
        detail=failure.detail,
        limit=optional(failure, "limit"),
        used=optional(failure, "used"),
        signal=optional(failure, "signal"),
        line=failure.position.line if placed else None,
        column=failure.position.column if placed else None,
        excerpt=failure.position.excerpt if placed else "",
        error_name=failure.error_name,
    )
