// A small OpenAI-compatible server around a GGUF file, for `python -m tests.models.real_model`.
// Needs `npm install node-llama-cpp` in the folder that NODE_MODULES names, and `node serve.mjs MODEL.gguf [PORT]`.
// With `tools`, the function's schema becomes a grammar, so the shape is always right and the content is the model's own;
// without, it writes what it likes.

import http from "node:http";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [file, port = "0"] = process.argv.slice(2);
const modules = process.env.NODE_MODULES ?? "node_modules";
const { getLlama, LlamaChatSession } = await import(
  pathToFileURL(path.resolve(modules, "node-llama-cpp/dist/index.js"))
);

const llama = await getLlama({ gpu: false, build: "never" });
const model = await llama.loadModel({ modelPath: file });
const threads = Number(process.env.THREADS ?? 1); // threads that wait for each other are slow on a busy machine
const context = await model.createContext({ contextSize: 4096, sequences: 1, threads });
const sequence = context.getSequence();
const grammars = new Map();
let turn = Promise.resolve(); // one sequence: questions queue, as on any small server

// The grammar library wants every property named as required; ours are all there then, which is a legal form, too.
function grammarOf(schema) {
  const key = JSON.stringify(schema);
  if (!grammars.has(key)) {
    grammars.set(key, llama.createGrammarForJsonSchema({ ...schema, required: Object.keys(schema.properties) }));
  }
  return grammars.get(key);
}

async function answer(body, signal) {
  const tool = body.tools?.[0]?.function;
  const session = new LlamaChatSession({
    contextSequence: sequence, systemPrompt: body.messages[0].content, autoDisposeSequence: false,
  });
  try {
    const said = body.messages.slice(1).map((one) => one.content).join("\n\n");
    const before = sequence.tokenMeter.getState();
    const text = await session.prompt(said, {
      grammar: tool ? await grammarOf(tool.parameters) : undefined,
      maxTokens: body.max_tokens ?? 400, temperature: Number(process.env.TEMPERATURE ?? body.temperature ?? 0),
      seed: Number(process.env.SEED ?? 1), signal, stopOnAbortSignal: true,
    });
    const used = sequence.tokenMeter.diff(before);
    const call = { id: "call-1", type: "function", function: { name: tool?.name, arguments: text } };
    const message = tool ? { role: "assistant", content: null, tool_calls: [call] } : { role: "assistant", content: text };
    return {
      id: "chat-1", object: "chat.completion", model: path.basename(file),
      choices: [{ index: 0, message, finish_reason: tool ? "tool_calls" : "stop" }],
      usage: { prompt_tokens: used.usedInputTokens, completion_tokens: used.usedOutputTokens },
    };
  } finally {
    session.dispose();
  }
}

function send(response, status, value) {
  if (response.writableEnded || response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

const server = http.createServer((request, response) => {
  let text = "";
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  request.setEncoding("utf8");
  request.on("data", (part) => { text += part; });
  request.on("end", () => {
    turn = turn.then(async () => {
      if (gone.signal.aborted) return;
      try {
        send(response, 200, await answer(JSON.parse(text), gone.signal));
      } catch (error) {
        send(response, 500, { error: { message: String(error) } });
      }
    });
  });
});
server.listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
