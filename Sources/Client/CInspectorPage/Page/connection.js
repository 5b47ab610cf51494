// The WebSocket to the program that serves the page: asks with one answer each, and pushes.

/** @typedef {{id?: number, answer?: any, error?: {code: string, message: string}, push?: string, [member: string]: any}} Message */

/** An ask that was refused, with the sentence that says why. */
export class Refusal extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }

  /** Whether it is only that there is no connection now, which the page says once, at the top. */
  get isInterruption() {
    return this.code === 'closed' || this.code === 'restarting';
  }
}

const RETRY = 1500;

export class Connection {
  constructor() {
    /** @type {WebSocket | null} */
    this.socket = null;
    this.lastID = 0;
    /** @type {Map<number, {resolve: (answer: any) => void, reject: (error: Refusal) => void}>} */
    this.asked = new Map();
    /** @type {Map<string, ((message: any) => void)[]>} */
    this.listeners = new Map();
  }

  /**
   * @param {string} push
   * @param {(message: any) => void} listener
   */
  on(push, listener) {
    const all = this.listeners.get(push) ?? [];
    all.push(listener);
    this.listeners.set(push, all);
  }

  open() {
    const address = new URL('socket', location.href);
    address.protocol = 'ws:';
    address.search = address.hash = '';
    const socket = new WebSocket(address);
    this.socket = socket;
    socket.addEventListener('open', () => {
      this.tell('open', {});
    });
    socket.addEventListener('message', (event) => this.receive(JSON.parse(event.data)));
    socket.addEventListener('close', () => this.closed());
  }

  /**
   * Asks something; the answer, or a thrown Refusal.
   * @param {string} ask
   * @param {Record<string, unknown>} [members]
   * @returns {Promise<any>}
   */
  ask(ask, members) {
    return new Promise((resolve, reject) => {
      if (this.socket?.readyState !== WebSocket.OPEN) {
        reject(new Refusal('closed', 'the page is not connected to lockstep inspect.'));
        return;
      }
      const id = ++this.lastID;
      this.asked.set(id, { resolve, reject });
      this.socket.send(JSON.stringify({ id, ask, ...members }));
    });
  }

  /** @param {Message} message */
  receive(message) {
    if (message.push !== undefined) {
      this.tell(message.push, message);
      return;
    }
    const asked = this.asked.get(message.id ?? -1);
    if (!asked) return;
    this.asked.delete(message.id ?? -1);
    if (message.error) asked.reject(new Refusal(message.error.code, message.error.message));
    else asked.resolve(message.answer);
  }

  closed() {
    const lost = new Refusal('closed', 'the connection to lockstep inspect has ended.');
    for (const { reject } of this.asked.values()) reject(lost);
    this.asked.clear();
    this.tell('lost', {});
    setTimeout(() => this.open(), RETRY);
  }

  /**
   * @param {string} push
   * @param {any} message
   */
  tell(push, message) {
    for (const listener of this.listeners.get(push) ?? []) listener(message);
  }
}
