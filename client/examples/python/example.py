#!/usr/bin/env python3
"""Runs programs on an executor: paging, fan-out, a tool that fails, a failure as a value. Exits with 1 where one of them does
not come to what it must.

    python3 example.py unix:/run/codemode/executor.sock
"""

import asyncio
import sys

from codemode_client import UNDEFINED, Client, Namespace, RunError, ToolError

BOOKS = [{"id": number, "title": f"Volume {number}"} for number in range(1, 24)]

PROGRAM = """
interface Book { id: number; title: string }
const books: Book[] = [];
for (let cursor: number | null = 0; cursor !== null; ) {
  const page = await library.list({ cursor, limit: 10 });
  books.push(...(page.books as Book[]));
  cursor = page.next as number | null;
  console.log(`read ${books.length} books`);
}
const stock = await Promise.all(books.map(async (book): Promise<[string, number]> => {
  try {
    return [book.title, await library.stock({ id: book.id })];
  } catch (error) {
    if (!(error instanceof LibraryError)) throw error;
    console.warn(`${error.tool}: ${error.message}`);
    return [book.title, 0];
  }
}));
return { books: books.length, copies: stock.reduce((sum, [, copies]) => sum + copies, 0) };
"""


async def list_books(args):
    begin, end = args["cursor"], args["cursor"] + args["limit"]
    return {"books": BOOKS[begin:end], "next": end if end < len(BOOKS) else None}


async def stock(args):
    # Later books answer sooner: replies need no order.
    await asyncio.sleep(0.002 * (len(BOOKS) - args["id"]))
    if args["id"] == 13:
        raise ToolError("shelf 13 is closed")
    return args["id"] % 3


LIBRARY = Namespace("library", {"list": list_books, "stock": stock}, error_class=("LibraryError", "tool"))


async def never(_args):
    await asyncio.Event().wait()


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}")


async def main(address):
    async with Client(address) as client:
        described = await client.describe()
        print(f"{address}: executor {described.executor_version}, engines {[engine.name for engine in described.engines]}")

        streamed = []

        def on_log(text):
            streamed.append(text)
            print("log:", text)

        outcome = await client.run(PROGRAM, [LIBRARY], on_log=on_log)
        print("value:", outcome.value, "failure:", outcome.failure)
        expect("value", outcome.value, {"books": 23, "copies": sum(book["id"] % 3 for book in BOOKS) - 1})
        expect("logs", outcome.logs, [*(f"read {n} books" for n in (10, 20, 23)), "stock: shelf 13 is closed"])
        expect("streamed logs", streamed, outcome.logs)
        expect("calls", outcome.usage.binding_calls, 3 + 23)
        print(f"usage: {outcome.usage.cpu_us} us CPU, {outcome.usage.wall_us} us elapsed, {outcome.usage.binding_calls} calls")

        outcome = await client.run("console.log('before');\nthrow new RangeError('too far')")
        print("failure:", outcome.failure)
        expect("kind", (outcome.failure.kind, outcome.failure.error_name), ("exception", "RangeError"))
        expect("line", outcome.failure.line, 2)
        expect("logs", (outcome.value, outcome.logs), (UNDEFINED, ["before"]))

        abort = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.1, abort.set_result, "changed my mind")
        outcome = await client.run("await slow.never({})", [Namespace("slow", {"never": never})], abort=abort)
        expect("abort", (outcome.failure.kind, outcome.failure.message), ("abort", "changed my mind"))

        try:
            await client.run("return 1", [Namespace("not an identifier", {})])
            sys.exit("a namespace that is no identifier was taken")
        except RunError as error:
            print("misuse:", error)
            expect("started", error.started, False)
    print("ok")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: example.py ADDRESS   (unix:/path, http://host:port or https://host:port)")
    asyncio.run(main(sys.argv[1]))
