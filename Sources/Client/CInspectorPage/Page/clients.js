// The clients as a picture of how far each is behind. The right edge is the newest revision; a bar
// reaches from it to where the client is, on a logarithmic scale.

import { byId, make, say } from './dom.js';
import { Drawing } from './drawing.js';
import * as format from './format.js';

/** @typedef {{connection: number, pid?: number, uid?: number, label?: string, position?: string, lagRevisions: number, lagBytes: number, lagMs: number, actionsPerSecond: number | null, bytesPerSecond: number | null, own?: boolean, [more: string]: unknown}} Client */

const MARKS = [1_000_000, 100_000, 10_000, 1000, 100, 10, 0];
const FARTHEST = 1_000_000;
const MOST = 300;

export class Clients {
  constructor() {
    /** @type {Client[] | null} */
    this.clients = [];
    this.element = byId('clients');
    this.list = make('ol.lags', { 'aria-label': 'Clients, the farthest behind first' });
    /** @type {Map<number, HTMLElement>} */
    this.rows = new Map();
    this.drawing = new Drawing(() => this.draw(), 250);
  }

  /** @param {Client[] | null} clients null: they may not be seen */
  take(clients) {
    this.clients = clients;
    this.drawing.soon();
  }

  draw() {
    say(byId('clients-count'), this.clients ? format.count(this.clients.length) : '');
    if (!this.clients?.length) {
      const text = this.clients
        ? 'No client is connected.'
        : 'You may not see the clients of this daemon.';
      this.element.replaceChildren(make(this.clients ? 'p.empty' : 'p.empty.refused', null, text));
      return;
    }
    if (!this.list.isConnected) this.element.replaceChildren(scale(), this.list);
    const order = [...this.clients].sort((a, b) =>
      b.lagRevisions - a.lagRevisions || a.connection - b.connection
    ).slice(0, MOST);
    const there = new Set(order.map((client) => client.connection));
    for (const [connection, row] of this.rows) {
      if (there.has(connection)) continue;
      row.remove();
      this.rows.delete(connection);
    }
    order.forEach((client, at) => {
      const row = this.rows.get(client.connection) ?? this.row(client);
      this.rows.set(client.connection, row);
      fill(row, client);
      if (this.list.children[at] !== row) {
        this.list.insertBefore(row, this.list.children[at] ?? null);
      }
    });
  }

  /** @param {Client} client */
  row(client) {
    const name = client.label || `connection ${client.connection}`;
    return make(
      'li',
      { 'data-client': client.connection, 'data-label': client.label ?? '' },
      make(
        'div.line',
        null,
        make('b.name', null, name),
        client.own ? make('span.hint', null, 'this inspector') : null,
        make('span.who', null, `pid ${client.pid ?? '?'} · uid ${client.uid ?? '?'}`),
        make('span.spring'),
        make('span.lag.number'),
      ),
      make('div.track', { 'aria-hidden': 'true' }, make('div.bar')),
      make('div.rates.hint'),
    );
  }
}

/**
 * @param {HTMLElement} row
 * @param {Client} client
 */
function fill(row, client) {
  const lag = client.lagRevisions;
  const time = format.duration(client.lagMs / 1000);
  const text = lag === 0 && client.lagBytes === 0
    ? 'up to date'
    : `${format.count(lag)} behind · ${format.bytes(client.lagBytes)} · ${time}`;
  row.dataset.lag = String(lag);
  say(/** @type {HTMLElement} */ (row.querySelector('.lag')), text);
  const bar = /** @type {HTMLElement} */ (row.querySelector('.bar'));
  bar.style.width = `${share(lag) * 100}%`;
  bar.className = `bar ${lag >= 10_000 ? 'far' : lag >= 100 ? 'behind' : 'near'}`;
  const bytes = format.bytes(client.bytesPerSecond);
  const rates = `${format.rate(client.actionsPerSecond)} actions/s · ${bytes}/s`;
  say(/** @type {HTMLElement} */ (row.querySelector('.rates')), rates);
}

/**
 * How much of the width a lag takes.
 * @param {number} lag
 */
function share(lag) {
  return Math.min(1, Math.log10(1 + lag) / Math.log10(1 + FARTHEST));
}

function scale() {
  const marks = MARKS.map((mark) => {
    const element = make(
      mark === FARTHEST ? 'span.mark.farthest' : 'span.mark',
      null,
      mark === 0 ? 'now' : mark >= 1e6 ? '1M' : mark >= 1000 ? `${mark / 1000}k` : String(mark),
    );
    element.style.right = `${share(mark) * 100}%`;
    return element;
  });
  return make('div.scale', { 'aria-hidden': 'true' }, ...marks);
}
