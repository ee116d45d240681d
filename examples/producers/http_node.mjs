// Sends a customer's message, a batch and a CloudEvent to the gateway, with nothing but fetch.
// A gateway with producer keys asks for one at the CloudEvent: INTERLOCK_GATEWAY_KEY.
//
//     node examples/producers/http_node.mjs http://127.0.0.1:8080

const gateway = process.argv[2] ?? "http://127.0.0.1:8080";
const TRIES = 5;
const KEY = process.env.INTERLOCK_GATEWAY_KEY;

/** POST JSON; the answer. The ids in the body make it safe to send again what may have arrived. */
async function post(path, body, headers = {}) {
  for (let wait = 0; wait < TRIES; wait += 1) {
    const answer = await fetch(gateway + path, {
      method: "POST", body: JSON.stringify(body), signal: AbortSignal.timeout(15_000),
      headers: { "content-type": "application/json", ...(KEY && { authorization: `Bearer ${KEY}` }), ...headers },
    }).catch(() => null); // no answer: it may be there or not, so the same ids again
    if (answer?.ok) return answer.json();
    if (answer && answer.status < 500) throw new Error(await answer.text()); // our own mistake: code, message and field
    await new Promise((resolve) => setTimeout(resolve, 1000 * 2 ** wait));
  }
  throw new Error(`${gateway} did not answer ${TRIES} times`);
}

const who = { shop: "demo", channel: "app", sender: "c-node" };
const message = { kind: "message", message_id: "m-1", text: "我要退款，订单1001" };
console.log(await post("/v1/events", { id: "node-1", occurred_at: Date.now(), ...who, body: message }));

const queue = [
  { id: "node-2", body: { kind: "heartbeat" } },
  { id: "node-3", body: { kind: "rating", score: 9 } }, // refused: a score is 1 to 5
];
console.log(JSON.stringify(await post("/v1/batch", { ...who, events: queue })));

// a CloudEvent in binary mode: the attributes are headers, the body is the data
const attributes = { specversion: "1.0", id: "node-4", source: "/surveys", type: "com.example.survey",
                     subject: "demo/app/c-node" };
const headers = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value]));
console.log(await post("/v1/cloudevents", { kind: "rating", thumb: "up" }, headers));
