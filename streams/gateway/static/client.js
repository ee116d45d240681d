/* The browser client of the web channel: one file, no dependencies.
 *
 *   <script src="/client.js" defer></script>
 *   <div data-interlock-chat data-shop="demo"></div>         mounts itself; or: InterlockChat.mount(element, {shop})
 *
 * What a customer does goes through a queue in the browser's storage under ids of its own, so that a lost answer, a
 * reload or a time without network neither loses nor repeats it. What we show is reported once a message, in idle time,
 * and only when it really was in sight. Texts are set as text, never as markup. */
(() => {
  "use strict";
  const BEAT_MS = 10_000; // three missing ones, and the pipeline holds the customer to be gone
  const RETRY_MS = 1_000; // doubled up to RETRY_MAX_MS
  const RETRY_MAX_MS = 30_000;
  const POST_MS = 15_000;
  const IDLE_MS = 2_000; // a report waits for idle time at most this long
  const BATCH = 50; // events in one request, and reports at the same time
  const SMALL = 4_000; // characters
  const KEPT = 200; // messages that a reload shows again
  const RATED = new Set(["reply", "staff", "notice"]);
  const WORDS = {
    zh: { placeholder: "请输入消息", send: "发送", recall: "撤回", recalled: "已撤回", up: "有帮助", down: "没有帮助",
          queued: "发送中", refused: "未发送", log: "对话" },
    en: { placeholder: "Type a message", send: "Send", recall: "Take back", recalled: "Taken back", up: "Helpful",
          down: "Not helpful", queued: "Sending", refused: "Not sent", log: "Conversation" },
  };

  function freshId() {
    if (crypto.randomUUID) return crypto.randomUUID(); // pages without TLS have none
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");
  }

  /** The browser's storage under a prefix, or memory where it is forbidden. */
  class Store {
    constructor(prefix) {
      this.prefix = prefix;
      try {
        this.area = window.localStorage;
        this.area.getItem(prefix);
      } catch {
        const map = new Map();
        this.area = {
          getItem: (key) => map.get(key) ?? null, setItem: (key, text) => map.set(key, text),
          removeItem: (key) => map.delete(key), get length() { return map.size; }, key: (at) => [...map.keys()][at],
        };
      }
    }

    get(name, otherwise = null) {
      try { return JSON.parse(this.area.getItem(this.prefix + name)) ?? otherwise; }
      catch { return otherwise; } // somebody else wrote there
    }

    set(name, value) {
      try { this.area.setItem(this.prefix + name, JSON.stringify(value)); }
      catch { return false; } // full
      return true;
    }

    remove(name) { this.area.removeItem(this.prefix + name); }
    names(start) {
      const keys = Array.from({ length: this.area.length }, (_, at) => this.area.key(at)).sort();
      return keys.filter((key) => key.startsWith(this.prefix + start)).map((key) => key.slice(this.prefix.length));
    }
  }

  /** Calls `work` until it says true, one call at a time, with growing pauses; `wake` tries at once. */
  class Retrying {
    constructor(work) { Object.assign(this, { work, running: false, again: false, pause: RETRY_MS, timer: 0 }); }

    wake({ patient = true } = {}) {
      if (!patient) this.pause = RETRY_MS;
      clearTimeout(this.timer);
      this.again = true;
      if (!this.running) this.run();
    }

    async run() {
      this.running = true;
      let done = true;
      while (this.again && done) {
        this.again = false;
        done = await this.work().catch(() => false);
      }
      this.running = false;
      if (!done && !this.closed) this.timer = setTimeout(() => this.wake(), this.pause);
      this.pause = done ? RETRY_MS : Math.min(2 * this.pause, RETRY_MAX_MS);
    }

    close() { this.closed = true; clearTimeout(this.timer); }
  }

  /** One customer's conversation; `view` shows it. */
  class Chat {
    constructor(view, { base = "", shop = "demo", channel = "web", sender } = {}) {
      this.view = view;
      this.base = base;
      const who = new Store(`interlock:${base}:${shop}:${channel}:`);
      // random and kept: it names the customer again after a reload, and nobody can guess it
      const known = sender || who.get("sender") || freshId();
      if (!sender) who.set("sender", known);
      this.who = { shop, channel, sender: known };
      this.conversation = `${shop}/${channel}/${known}`;
      this.store = new Store(`interlock:${base}:${this.conversation}:`);
      this.entries = new Map(this.store.get("log", []).map((entry) => [entry.id, entry]));
      this.end = new AbortController();
      this.ended = { signal: this.end.signal };
      this.queue = new Retrying(() => this.sendQueue());
      this.reports = new Retrying(() => this.sendReports());
    }

    start() {
      for (const entry of this.entries.values()) this.view.show(entry);
      this.listen();
      this.beat();
      this.beating = setInterval(() => this.beat(), BEAT_MS);
      const resume = () => { for (const one of [this.queue, this.reports]) one.wake({ patient: false }); };
      window.addEventListener("online", resume, this.ended);
      // a customer who leaves within seconds leaves no idle time: what was seen is told on the way out
      window.addEventListener("pagehide", () => this.reports.wake(), this.ended);
      resume();
    }

    close() {
      this.end.abort();
      clearInterval(this.beating);
      clearTimeout(this.reconnecting);
      for (const one of [this.source, this.queue, this.reports]) one.close();
    }

    /** Send a text; the id of the message. */
    send(text) {
      const id = freshId();
      this.keep({ id, own: true, text, state: "queued" });
      return this.put({ kind: "message", message_id: id, text });
    }

    /** The whole new text of a message of one's own. */
    edit(id, text) {
      this.keep({ ...this.entries.get(id), text });
      this.put({ kind: "edit", message_id: id, text });
    }

    recall(id) {
      this.keep({ ...this.entries.get(id), state: "recalled" });
      this.put({ kind: "recall", message_id: id });
    }

    /** Rate a message, or without `messageId` the session: `{thumb: "up" | "down"}` or `{score: 1 to 5}`, and a text. */
    rate({ messageId = null, thumb, score, text = "" }) {
      const entry = this.entries.get(messageId);
      if (entry) this.keep({ ...entry, rated: thumb ?? score });
      this.put({ kind: "rating", ...(thumb ? { thumb } : { score }), message_id: messageId, text });
    }

    /** The customer saw the message (`displayed`), or clicked it (`read`). Each counts once. */
    seen(id, state) {
      const entry = this.entries.get(id);
      if (!entry || entry.own || entry[state]) return;
      this.keep({ ...entry, [state]: { at: Date.now(), told: false } });
      if (state === "read") this.seen(id, "displayed");
      this.whenIdle();
    }

    whenIdle() {
      if (this.idle) return;
      this.idle = true;
      const report = () => { this.idle = false; this.reports.wake(); };
      (window.requestIdleCallback ?? setTimeout)(report, window.requestIdleCallback ? { timeout: IDLE_MS } : 200);
    }

    keep(entry) {
      this.entries.set(entry.id, entry);
      while (this.entries.size > KEPT) this.entries.delete(this.entries.keys().next().value);
      this.store.set("log", [...this.entries.values()]);
      this.view.show(entry);
    }

    put(body) {
      const event = { id: freshId(), occurred_at: Date.now(), body };
      // a key each: two windows of one customer must not write over each other's queue
      const order = this.store.get("order", 0) + 1;
      this.store.set("order", order);
      if (this.store.set(`out:${String(order).padStart(12, "0")}:${event.id}`, event)) this.queue.wake();
      else this.judged(body, false);
      return body.message_id;
    }

    /** Hand in what waits, oldest first; true when nothing is left. */
    async sendQueue() {
      let size = BATCH;
      for (;;) {
        const names = this.store.names("out:").slice(0, size);
        if (!names.length) return true;
        const answer = await this.post("/v1/batch", { ...this.who, events: names.map((name) => this.store.get(name)) });
        if (retriable(answer.status)) return false;
        if (answer.ok) {
          const { results } = await answer.json();
          for (const one of results) if (!one.error?.retry) this.taken(names[one.index], !one.error);
          if (results.some((one) => one.error?.retry)) return false;
        } else if (names.length > 1) {
          size = 1; // refused as a whole: find the one that is at fault
        } else {
          this.taken(names[0], false);
          size = BATCH;
        }
      }
    }

    taken(name, accepted) {
      const { body } = this.store.get(name);
      this.store.remove(name);
      this.judged(body, accepted);
    }

    judged(body, accepted) {
      const entry = body.kind === "message" && this.entries.get(body.message_id);
      if (entry?.state === "queued") this.keep({ ...entry, state: accepted ? "sent" : "refused" });
    }

    /** Side by side: a page that is being left has no time for one after the other. */
    async sendReports() {
      const both = [...this.entries.values()].flatMap((entry) => ["displayed", "read"].map((state) => [entry, state]));
      const due = both.filter(([entry, state]) => entry[state] && !entry[state].told);
      this.reports.again = due.length > BATCH;
      const sent = due.slice(0, BATCH).map(async ([{ id }, state]) => {
        const occurred = this.entries.get(id)[state].at;
        const what = { conversation: this.conversation, receipt_id: `${id}:${state}`, message_id: id, source: "client" };
        const answer = await this.post("/v1/receipts", { ...what, state, occurred_at: occurred });
        if (retriable(answer.status)) return false;
        this.keep({ ...this.entries.get(id), [state]: { at: occurred, told: true } });
        return true;
      });
      return (await Promise.all(sent)).every(Boolean);
    }

    beat() {
      const event = { id: `beat-${freshId()}`, occurred_at: Date.now(), body: { kind: "heartbeat" }, ...this.who };
      this.post("/v1/events", event).catch(() => undefined); // the next one says the same
    }

    listen() {
      const query = new URLSearchParams({ ...this.who, last_event_id: String(this.store.get("cursor", 0)) });
      this.source = new EventSource(`${this.base}/v1/stream?${query}`);
      this.source.onopen = () => { this.listenPause = RETRY_MS; };
      this.source.onmessage = (event) => {
        const { message_id: id, text, kind, choices } = JSON.parse(event.data);
        this.keep({ ...this.entries.get(id), id, text, kind, choices, own: false }); // a resend is the same one
        this.store.set("cursor", Number(event.lastEventId)); // after the message is kept: never skipped
      };
      this.source.onerror = () => {
        if (this.source.readyState !== EventSource.CLOSED) return; // it comes back by itself
        const pause = this.listenPause ?? RETRY_MS;
        this.listenPause = Math.min(2 * pause, RETRY_MAX_MS);
        this.reconnecting = setTimeout(() => this.listen(), pause);
      };
    }

    post(path, body) {
      const [text, headers] = [JSON.stringify(body), { "content-type": "application/json" }];
      // a request that outlives its page must be small: browsers refuse more than 64 KiB of them
      const limits = { keepalive: text.length < SMALL, signal: AbortSignal.timeout?.(POST_MS) };
      return fetch(this.base + path, { method: "POST", body: text, headers, ...limits });
    }
  }

  const retriable = (status) => status >= 500 || status === 429 || status === 408;

  function make(tag, properties = {}, ...children) {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  }

  /** Shows a chat in an element. */
  class View {
    constructor(root, language) {
      this.words = WORDS[language?.toLowerCase().startsWith("zh") ? "zh" : "en"];
      this.log = make("ol", { className: "ilk-log", ariaLive: "polite", ariaLabel: this.words.log });
      const { placeholder } = this.words;
      this.input = make("textarea", { rows: 1, maxLength: 20_000, placeholder, ariaLabel: placeholder });
      const form = make("form", { className: "ilk-form" }, this.input, make("button", { innerText: this.words.send }));
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const text = this.input.value.trim();
        this.input.value = "";
        if (text) this.chat.send(text);
      });
      this.input.addEventListener("keydown", (event) => {
        // Enter also ends a word of an input method, and must not send it
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        form.requestSubmit();
      });
      root.replaceChildren(this.log, form);
      this.rows = new Map();
      this.inSight = new Set();
      // in steps of a hundredth: a message that is many windows tall is told, too, when it fills one
      const threshold = Array.from({ length: 101 }, (_, at) => at / 100);
      this.observer = new IntersectionObserver((seen) => this.observed(seen), { threshold });
      document.addEventListener("visibilitychange", () => this.tell());
    }

    observed(seen) {
      for (const { target, isIntersecting, intersectionRatio, intersectionRect } of seen) {
        // of a message that is taller than the window no half can be in sight
        const enough = intersectionRatio >= 0.5 || intersectionRect.height >= window.innerHeight / 2;
        if (isIntersecting && enough) this.inSight.add(target.dataset.id);
        else this.inSight.delete(target.dataset.id);
      }
      this.tell();
    }

    tell() {
      if (document.visibilityState !== "visible") return;
      for (const id of this.inSight) {
        this.chat.seen(id, "displayed");
        this.observer.unobserve(this.rows.get(id));
      }
      this.inSight.clear();
    }

    show(entry) {
      const { scrollHeight, scrollTop, clientHeight } = this.log;
      const known = this.rows.get(entry.id);
      const row = known ?? this.add(entry);
      row.className = `ilk-message ${entry.own ? "ilk-own" : "ilk-theirs"} ilk-${entry.state ?? entry.kind ?? "sent"}`;
      row.querySelector(".ilk-text").textContent = entry.state === "recalled" ? this.words.recalled : entry.text;
      if (entry.own) {
        row.querySelector(".ilk-state").textContent = this.words[entry.state] ?? "";
        row.querySelector(".ilk-recall").hidden = entry.state !== "sent";
      }
      for (const one of row.querySelectorAll(".ilk-rate")) one.ariaPressed = String(one.value === entry.rated);
      // who reads further up is left there
      if (!known && (entry.own || scrollHeight - scrollTop - clientHeight < 50)) row.scrollIntoView({ block: "end" });
    }

    add(entry) {
      const row = make("li", {}, make("div", { className: "ilk-text" }), ...this.tools(entry));
      row.dataset.id = entry.id;
      this.rows.set(entry.id, row);
      this.log.append(row);
      if (!entry.own) {
        row.addEventListener("click", () => this.chat.seen(entry.id, "read"));
        if (!entry.displayed) this.observer.observe(row);
      }
      return row;
    }

    tools(entry) {
      if (entry.own) {
        const recall = this.button("ilk-recall", this.words.recall, () => this.chat.recall(entry.id));
        return [make("span", { className: "ilk-state" }), recall];
      }
      const tools = [make("div", { className: "ilk-choices" }, ...this.choices(entry))];
      if (RATED.has(entry.kind)) {
        const thumbs = Object.entries({ up: "👍", down: "👎" }).map(([value, sign]) => this.button("ilk-rate", sign,
          () => this.chat.rate({ messageId: entry.id, thumb: value }), { value, ariaLabel: this.words[value] }));
        tools.push(make("div", { className: "ilk-rating" }, ...thumbs));
      }
      return tools;
    }

    choices(entry) {
      const answer = (number) => {
        for (const one of buttons) one.disabled = true; // one answer to one question
        this.chat.send(String(number));
      };
      const buttons = (entry.choices ?? []).map(({ number, label }) =>
        this.button("ilk-choice", `${number}. ${label}`, () => answer(number)));
      return buttons;
    }

    button(className, textContent, act, properties = {}) {
      const made = make("button", { type: "button", className, textContent, ...properties });
      made.addEventListener("click", act);
      return made;
    }
  }

  /** A chat in the element; options: `shop`, `channel`, `sender`, `base` (the gateway's URL), `language`. */
  function mount(element, options = {}) {
    const view = new View(element, options.language || document.documentElement.lang || navigator.language);
    view.chat = new Chat(view, options);
    view.chat.start();
    return view.chat;
  }

  window.InterlockChat = { mount };
  const ready = () => {
    for (const element of document.querySelectorAll("[data-interlock-chat]")) {
      const { shop, channel, sender, base, language, fromQuery } = element.dataset;
      const query = new URLSearchParams(fromQuery === undefined ? "" : location.search);
      const asked = Object.fromEntries(["shop", "sender", "language"].map((name) => [name, query.get(name)]));
      const set = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value));
      element.chat = mount(element, { ...set({ shop, channel, sender, base, language }), ...set(asked) });
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
  else ready();
})();
