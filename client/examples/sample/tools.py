#!/usr/bin/env python3
"""Tools over a small file of orders, served to a program over JSON lines. Standard library only.

First line out: what is served. Then each line in is a call, each line out an answer, in any order: calls run side by
side, each after the delay that a real service would have. Whatever is for people goes to standard error.
"""

import asyncio
import json
import pathlib
import sys

DATA = json.loads((pathlib.Path(__file__).parent / "orders.json").read_text(encoding="utf-8"))


class ToolError(Exception):
    """A failure that the program may see."""


async def list_orders(args):
    """One page of orders, with the cursor of the next page where there is one."""
    begin, limit = int(args.get("cursor", "0")), args.get("limit", 10)
    page = DATA["orders"][begin : begin + limit]
    end = begin + len(page)
    return {"orders": page} | ({"nextCursor": str(end)} if end < len(DATA["orders"]) else {})


async def get_customer(args):
    """A customer by id."""
    for customer in DATA["customers"]:
        if customer["id"] == args["id"]:
            return customer
    raise ToolError(f"no customer `{args['id']}`")


async def euro_rate(args):
    """What one unit of a currency is in euros."""
    rate = DATA["euroRates"].get(args["currency"])
    if rate is None:
        raise ToolError(f"no rate for `{args['currency']}` today")
    return rate


TOOLS = {"listOrders": list_orders, "getCustomer": get_customer, "euroRate": euro_rate}


def send(message):
    # One write per line: answers come from several tasks.
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def answer(call):
    try:
        await asyncio.sleep(0.02)
        send({"id": call["id"], "value": await TOOLS[call["name"]](call["args"])})
    except ToolError as error:
        send({"id": call["id"], "error": {"message": str(error)}})
    except Exception as error:  # A fault of a tool fails its call, never the server.
        print(f"{call['name']}: {error!r}", file=sys.stderr)
        send({"id": call["id"], "error": {"message": f"{call['name']} failed: {error!r}"}})


async def serve():
    error_class = {"name": "ToolCallError", "memberNameProperty": "toolName"}
    send({"namespaces": [{"global": "tools", "functions": list(TOOLS), "errorClass": error_class}]})
    loop = asyncio.get_running_loop()
    running = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = loop.create_task(answer(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


asyncio.run(serve())
