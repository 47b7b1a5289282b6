// What a customer bought, in euros, largest first. The kind of program a model writes: it pages, fans out, survives a
// tool that fails, reports while it works and returns only what is asked for.
interface Order { id: string; customer: string; currency: string; cents: number; status: "paid" | "open" | "late" }
interface Customer { id: string; name: string; country: string }

// Page through all orders.
const orders: Order[] = [];
let cursor: string | undefined;
do {
  const page = await tools.listOrders(cursor === undefined ? { limit: 8 } : { limit: 8, cursor });
  orders.push(...(page.orders as Order[]));
  cursor = page.nextCursor;
  console.log(`read ${orders.length} orders`);
} while (cursor !== undefined);

// Fan out: every customer and every rate at once.
const customerIds = [...new Set(orders.map((order) => order.customer))];
const currencies = [...new Set(orders.map((order) => order.currency))];
const [customers, rates] = await Promise.all([
  Promise.all(customerIds.map((id) => tools.getCustomer({ id }) as Promise<Customer>)),
  Promise.all(currencies.map(async (currency): Promise<[string, number | null]> => {
    try {
      return [currency, await tools.euroRate({ currency })];
    } catch (error) {
      if (!(error instanceof ToolCallError)) throw error;
      console.warn(`${error.toolName} failed: ${error.message}; its orders are left out`);
      return [currency, null];
    }
  })),
]);

// Add up.
const rateOf = new Map(rates);
const totals = customers.map((customer) => {
  const own = orders.filter((order) => order.customer === customer.id && order.status !== "open");
  const euros = own.reduce((sum, order) => sum + (order.cents / 100) * (rateOf.get(order.currency) ?? 0), 0);
  const late = own.filter((order) => order.status === "late").map((order) => order.id);
  return { name: customer.name, orders: own.length, euros: Math.round(euros * 100) / 100, late };
}).sort((a, b) => b.euros - a.euros);

for (const { name, euros } of totals) console.log(`${name.padEnd(16)} ${euros.toFixed(2).padStart(10)} EUR`);
return { orders: orders.length, totals, unrated: currencies.filter((currency) => rateOf.get(currency) === null) };
