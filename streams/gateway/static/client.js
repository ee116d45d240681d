/*
 * The browser client of the web channel: one file, no dependencies.
 *
 *   <script src="/client.js" defer></script>
 *   <div data-interlock-chat data-shop="demo"></div>         mounts itself; or: InterlockChat.mount(element, {shop})
 *
 * What a customer does goes through a queue in the browser's storage under ids of its own, so that a lost answer, a
 * reload or a time without network neither loses nor repeats it. What we show is reported once a message, in idle time,
 * and only when it really was in sight. Texts are set as text, never as markup.
 */
(() => {
  "use strict";

  const BEAT_MS = 10_000; // three missing ones, and the pipeline holds the customer to be gone
  const RETRY_MS = 1_000; // doubled up to RETRY_MAX_MS
  const RETRY_MAX_MS = 30_000;
  const POST_MS = 15_000;
  const IDLE_MS = 2_000; // a report waits for idle time at most this long
  const BATCH = 50;
  const KEPT = 200; // messages that a reload shows again
  const RATED = new Set(["reply", "staff", "notice"]);
  const WORDS = {
    zh: { placeholder: "请输入消息", send: "发送", recall: "撤回", recalled: "已撤回", up: "有帮助", down: "没有帮助",
          queued: "发送中", refused: "未发送", log: "对话" },
    en: { placeholder: "Type a message", send: "Send", recall: "Take back", recalled: "Taken back", up: "Helpful",
          down: "Not helpful", queued: "Sending", refused: "Not sent", log: "Conversation" },
  };

  function freshId() {
    if (crypto.randomUUID) return crypto.randomUUID();
    // pages without TLS have no randomUUID
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");
  }

  /** The browser's storage under a prefix, or memory where it is forbidden. */
  class Store {
    constructor(prefix) {
      this.prefix = prefix;
      try {
        this.area = window.localStorage;
        this.area.setItem(`${prefix}probe`, "");
        this.area.removeItem(`${prefix}probe`);
      } catch {
        const map = new Map();
        this.area = {
          getItem: (key) => map.get(key) ?? null, setItem: (key, text) => map.set(key, text),
          removeItem: (key) => map.delete(key), get length() { return map.size; }, key: (at) => [...map.keys()][at],
        };
      }
    }

    get(name, otherwise = null) {
      try {
        return JSON.parse(this.area.getItem(this.prefix + name)) ?? otherwise;
      } catch {
        return otherwise; // somebody else wrote there
      }
    }

    set(name, value) {
      try {
        this.area.setItem(this.prefix + name, JSON.stringify(value));
      } catch (error) {
        console.warn("interlock: the browser's storage is full", error); // a reload will not know this value
      }
    }

    remove(name) { this.area.removeItem(this.prefix + name); }

    names(start) {
      const keys = Array.from({ length: this.area.length }, (_, at) => this.area.key(at));
      return keys.filter((key) => key.startsWith(this.prefix + start)).map((key) => key.slice(this.prefix.length)).sort();
    }
  }

  /** Calls `work` until it says true, one call at a time, with growing pauses; `wake` tries at once. */
  class Retrying {
    constructor(work) { this.work = work; this.running = false; this.again = false; this.pause = RETRY_MS; this.timer = 0; }

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
      if (done) {
        this.pause = RETRY_MS;
      } else if (!this.closed) {
        this.timer = setTimeout(() => this.wake(), this.pause);
        this.pause = Math.min(2 * this.pause, RETRY_MAX_MS);
      }
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
      this.queue = new Retrying(() => this.sendQueue());
      this.reports = new Retrying(() => this.sendReports());
    }

    start() {
      for (const entry of this.entries.values()) this.view.show(entry);
      this.listen();
      this.beat();
      this.beating = setInterval(() => this.beat(), BEAT_MS);
      this.online = () => {
        for (const one of [this.queue, this.reports]) one.wake({ patient: false });
        this.beat();
      };
      window.addEventListener("online", this.online);
      this.queue.wake();
      this.reports.wake();
    }

    close() {
      clearInterval(this.beating);
      clearTimeout(this.reconnecting);
      window.removeEventListener("online", this.online);
      this.source?.close();
      this.queue.close();
      this.reports.close();
    }

    /** Send a text; the id of the message. */
    send(text) {
      const id = freshId();
      this.keep({ id, own: true, text, state: "queued" });
      this.put({ kind: "message", message_id: id, text });
      return id;
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

    /** The customer saw the message. Counts once. */
    displayed(id) {
      const entry = this.entries.get(id);
      if (!entry || entry.own || entry.displayed) return;
      this.keep({ ...entry, displayed: { at: Date.now(), told: false } });
      this.whenIdle();
    }

    /** The customer clicked the message or answered it. Counts once. */
    read(id) {
      const entry = this.entries.get(id);
      if (!entry || entry.own || entry.read) return;
      this.displayed(id);
      this.keep({ ...this.entries.get(id), read: { at: Date.now(), told: false } });
      this.whenIdle();
    }

    whenIdle() {
      if (this.idle) return;
      this.idle = true;
      const report = () => { this.idle = false; this.reports.wake(); };
      if (window.requestIdleCallback) window.requestIdleCallback(report, { timeout: IDLE_MS });
      else setTimeout(report, 200);
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
      const order = (this.store.get("order", 0)) + 1;
      this.store.set("order", order);
      this.store.set(`out:${String(order).padStart(12, "0")}:${event.id}`, event);
      this.queue.wake();
    }

    /** Hand in what waits, oldest first; true when nothing is left. */
    async sendQueue() {
      let size = BATCH;
      for (;;) {
        const names = this.store.names("out:").slice(0, size);
        if (!names.length) return true;
        const answer = await this.post("/v1/batch", { ...this.who, events: names.map((name) => this.store.get(name)) });
        if (answer.status !== 202 && answer.status !== 207) {
          if (retriable(answer.status)) return false;
          if (size > 1) { size = 1; continue; } // refused as a whole: find the one that is at fault
          this.taken(names[0], false);
          size = BATCH;
          continue;
        }
        const { results } = await answer.json();
        for (const one of results) if (!one.error?.retry) this.taken(names[one.index], !one.error);
        if (results.some((one) => one.error?.retry)) return false;
      }
    }

    taken(name, accepted) {
      const body = this.store.get(name)?.body;
      this.store.remove(name);
      const entry = body?.kind === "message" && this.entries.get(body.message_id);
      if (entry && entry.state === "queued") this.keep({ ...entry, state: accepted ? "sent" : "refused" });
    }

    async sendReports() {
      for (const { id } of [...this.entries.values()]) {
        for (const state of ["displayed", "read"]) {
          const report = this.entries.get(id)?.[state];
          if (!report || report.told) continue;
          const answer = await this.post("/v1/receipts", {
            conversation: this.conversation, receipt_id: `${id}:${state}`, message_id: id, state,
            occurred_at: report.at, source: "client",
          });
          if (retriable(answer.status)) return false;
          this.keep({ ...this.entries.get(id), [state]: { ...report, told: true } });
        }
      }
      return true;
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
        this.hear(JSON.parse(event.data));
        this.store.set("cursor", Number(event.lastEventId)); // after the message is kept: never skipped
      };
      this.source.onerror = () => {
        if (this.source.readyState !== EventSource.CLOSED) return; // it comes back by itself
        const pause = this.listenPause ?? RETRY_MS;
        this.listenPause = Math.min(2 * pause, RETRY_MAX_MS);
        this.reconnecting = setTimeout(() => this.listen(), pause);
      };
    }

    /** A message of ours; one that comes again is the same one (its id says so). */
    hear(message) {
      const known = this.entries.get(message.message_id);
      const { message_id: id, text, kind, choices } = message;
      this.keep({ ...known, id, text, kind, choices, own: false });
    }

    post(path, body) {
      const signal = AbortSignal.timeout ? AbortSignal.timeout(POST_MS) : undefined;
      return fetch(this.base + path, {
        method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" },
        keepalive: true, credentials: "same-origin", signal,
      });
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
      this.log = make("ol", { className: "ilk-log" });
      this.log.setAttribute("aria-live", "polite");
      this.log.setAttribute("aria-label", this.words.log);
      this.input = make("textarea", { rows: 1, maxLength: 20_000, placeholder: this.words.placeholder });
      this.input.setAttribute("aria-label", this.words.placeholder);
      const form = make("form", { className: "ilk-form" }, this.input, make("button", { textContent: this.words.send }));
      form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
      this.input.addEventListener("keydown", (event) => {
        // Enter also ends a word of an input method, and must not send it
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        this.submit();
      });
      root.replaceChildren(this.log, form);
      this.rows = new Map();
      this.inSight = new Set();
      this.observer = new IntersectionObserver((seen) => this.observed(seen), { threshold: [0, 0.25, 0.5, 1] });
      document.addEventListener("visibilitychange", () => this.tell());
    }

    submit() {
      const text = this.input.value.trim();
      if (!text) return;
      this.input.value = "";
      this.chat.send(text);
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
        this.inSight.delete(id);
        this.chat.displayed(id);
        this.observer.unobserve(this.rows.get(id));
      }
    }

    show(entry) {
      const { scrollHeight, scrollTop, clientHeight } = this.log;
      const known = this.rows.get(entry.id);
      const row = known ?? this.add(entry);
      row.className = `ilk-message ${entry.own ? "ilk-own" : "ilk-theirs"} ilk-${entry.state ?? entry.kind ?? "sent"}`;
      row.querySelector(".ilk-text").textContent = entry.state === "recalled" ? this.words.recalled : entry.text;
      const state = row.querySelector(".ilk-state");
      if (state) state.textContent = this.words[entry.state] ?? "";
      const recall = row.querySelector(".ilk-recall");
      if (recall) recall.hidden = entry.state !== "sent";
      for (const button of row.querySelectorAll(".ilk-rate")) {
        button.setAttribute("aria-pressed", String(button.value === entry.rated));
      }
      // who reads further up is left there
      if (!known && (entry.own || scrollHeight - scrollTop - clientHeight < 50)) row.scrollIntoView({ block: "end" });
    }

    add(entry) {
      const row = make("li", {}, make("div", { className: "ilk-text" }));
      row.dataset.id = entry.id;
      if (entry.own) row.append(...this.ownTools(entry));
      else row.append(...this.theirTools(entry));
      this.rows.set(entry.id, row);
      this.log.append(row);
      if (!entry.own) {
        row.addEventListener("click", () => this.chat.read(entry.id));
        if (!entry.displayed) this.observer.observe(row);
      }
      return row;
    }

    ownTools(entry) {
      const recall = make("button", { type: "button", className: "ilk-recall", textContent: this.words.recall });
      recall.addEventListener("click", () => this.chat.recall(entry.id));
      return [make("span", { className: "ilk-state" }), recall];
    }

    theirTools(entry) {
      const tools = [];
      if (entry.choices?.length) tools.push(make("div", { className: "ilk-choices" }, ...this.choices(entry)));
      if (RATED.has(entry.kind)) {
        tools.push(make("div", { className: "ilk-rating" }, ...[["up", "👍"], ["down", "👎"]].map(([thumb, sign]) => {
          const button = make("button", { type: "button", className: "ilk-rate", value: thumb, textContent: sign });
          button.setAttribute("aria-label", this.words[thumb]);
          button.addEventListener("click", () => this.chat.rate({ messageId: entry.id, thumb }));
          return button;
        })));
      }
      return tools;
    }

    choices(entry) {
      const buttons = entry.choices.map(({ number, label }) => {
        const button = make("button", { type: "button", className: "ilk-choice", textContent: `${number}. ${label}` });
        button.addEventListener("click", () => {
          for (const other of buttons) other.disabled = true; // one answer to one question
          this.chat.send(String(number));
        });
        return button;
      });
      return buttons;
    }
  }

  /** A chat in the element; options: `shop`, `channel`, `sender`, `base` (the gateway's URL), `language`. */
  function mount(element, options = {}) {
    const view = new View(element, options.language || document.documentElement.lang || navigator.language);
    const chat = new Chat(view, options);
    view.chat = chat;
    chat.start();
    return chat;
  }

  window.InterlockChat = { mount };
  const ready = () => {
    for (const element of document.querySelectorAll("[data-interlock-chat]")) {
      const { shop, channel, sender, base, language, fromQuery } = element.dataset;
      const asked = fromQuery === undefined ? {} : Object.fromEntries(new URLSearchParams(location.search));
      const given = Object.entries({ shop, channel, sender, base, language, ...asked }).filter(([, value]) => value);
      element.chat = mount(element, Object.fromEntries(given));
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
  else ready();
})();
