// Two minutes of what the daemon does, drawn by hand: a point a second.

import { byId, draw, make, say } from './dom.js';
import { Drawing } from './drawing.js';
import * as format from './format.js';

/** @typedef {{at: number, values: Record<string, number | null>}} Point */
/** @typedef {{name: string, title: string, lines: {name: string, label: string}[], show: (value: number | null) => string}} Plot */

const SECONDS = 120;
const WIDTH = 480;
const HEIGHT = 72;

/** @type {Plot[]} */
const PLOTS = [
  {
    name: 'actions',
    title: 'Actions a second',
    lines: [{ name: 'actions', label: '' }],
    show: format.rate,
  },
  {
    name: 'latency',
    title: 'Latency',
    lines: [{ name: 'p50', label: 'p50' }, { name: 'p99', label: 'p99' }],
    show: format.duration,
  },
  {
    name: 'bytes',
    title: 'Bytes sent a second',
    lines: [{ name: 'bytes', label: '' }],
    show: format.bytes,
  },
  { name: 'held', title: 'Held states', lines: [{ name: 'held', label: '' }], show: format.count },
  {
    name: 'queue',
    title: 'Journal queue',
    lines: [{ name: 'queue', label: '' }],
    show: format.bytes,
  },
];

export class Plots {
  constructor() {
    /** @type {Point[]} */
    this.points = [];
    /** @type {any} */
    this.look = null;
    this.drawing = new Drawing(() => this.draw(), 250);
    this.figures = PLOTS.map(figure);
    byId('plots').append(...this.figures);
  }

  /**
   * Takes in a push `look`.
   * @param {any} push
   */
  take(push) {
    const { look, latency } = push;
    this.look = look;
    this.points.push({
      at: Date.now(),
      values: {
        actions: look.perSecond?.actions ?? null,
        p50: latency?.p50 ?? null,
        p99: latency?.p99 ?? null,
        bytes: bytesSent(look),
        held: look.status?.heldStates ?? null,
        queue: look.status?.journalQueueBytes ?? null,
      },
    });
    const oldest = Date.now() - SECONDS * 1000;
    while (this.points.length > 0 && this.points[0].at < oldest) this.points.shift();
    this.drawing.soon();
  }

  draw() {
    if (byId('panel-plots').hidden) return;
    PLOTS.forEach((plot, at) => this.drawPlot(plot, this.figures[at]));
    this.drawTables();
  }

  /**
   * @param {Plot} plot
   * @param {HTMLElement} element
   */
  drawPlot(plot, element) {
    const end = this.points.at(-1)?.at ?? Date.now();
    const all = plot.lines.flatMap((line) => this.points.map((point) => point.values[line.name]))
      .filter((value) => value !== null);
    const top = roundUp(Math.max(0, .../** @type {number[]} */ (all)));
    const x = (/** @type {Point} */ point) => WIDTH - ((end - point.at) / (SECONDS * 1000)) * WIDTH;
    const y = (/** @type {number} */ value) => HEIGHT - 1 - (value / top) * (HEIGHT - 4);
    for (const line of plot.lines) {
      const runs = [];
      let isOn = false;
      for (const point of this.points) {
        const value = point.values[line.name];
        if (value !== null) {
          runs.push(`${isOn ? 'L' : 'M'}${x(point).toFixed(1)} ${y(value).toFixed(1)}`);
        }
        isOn = value !== null;
      }
      const path =
        /** @type {SVGElement} */ (element.querySelector(`path[data-line="${line.name}"]`));
      path.setAttribute('d', runs.join(''));
      path.dataset.points = String(runs.length);
    }
    const last = this.points.at(-1)?.values ?? {};
    const now = plot.lines.map((line) =>
      `${line.label} ${plot.show(last[line.name] ?? null)}`.trim()
    ).join(' · ');
    say(/** @type {HTMLElement} */ (element.querySelector('.current')), now);
    say(
      /** @type {HTMLElement} */ (element.querySelector('.top')),
      all.length > 0 ? plot.show(top) : '',
    );
    element.querySelector('svg')?.setAttribute(
      'aria-label',
      `${plot.title}, the last two minutes; now ${now}, at most ${plot.show(top)}`,
    );
  }

  drawTables() {
    const { look } = this;
    if (!look) return;
    const status = look.status ?? {};
    const memory = look.memory ?? {};
    /** @type {[string, string][]} */
    const facts = [
      ['Up for', format.duration(status.uptimeMs / 1000)],
      ['Durability', String(status.durability ?? '–')],
      ['Durable revision', format.count(status.durableRevision)],
      ['Resident memory', format.bytes(memory.residentBytes)],
      [
        'State',
        `${format.bytes(memory.stateBytes)}, in memory ${format.bytes(memory.stateMemoryBytes)}`,
      ],
      ['History', format.bytes(memory.historyBytes)],
      [
        'Processor',
        look.perSecond?.processor == null
          ? '–'
          : `${format.rate(look.perSecond.processor * 100)} %`,
      ],
    ];
    const list = make(
      'dl.facts',
      null,
      ...facts.map(([name, value]) =>
        make('div', null, make('dt', null, name), make('dd', null, value))
      ),
    );
    const names = look.actions === null
      ? make('p.empty.refused', null, 'You may not see the actions of this daemon.')
      : table(look.actions ?? []);
    byId('facts-table').replaceChildren(
      make('h3', null, 'Actions by name'),
      names,
      make('h3', null, 'Daemon'),
      list,
    );
  }
}

/** @param {{action: string, count: number, perSecond: number | null, rejected: number}[]} actions */
function table(actions) {
  const heads = ['Action', 'Count', 'A second', 'Rejected'].map((text, at) =>
    make(at ? 'th.number' : 'th', { scope: 'col' }, text)
  );
  const rows = [...actions].sort((a, b) => b.count - a.count).slice(0, 40).map((one) =>
    make(
      'tr',
      { 'data-action': one.action },
      make('td', null, make('b', null, one.action)),
      make('td.number', null, format.count(one.count)),
      make('td.number', null, format.rate(one.perSecond)),
      make('td.number', null, format.count(one.rejected)),
    )
  );
  return make(
    'table',
    null,
    make('thead', null, make('tr', null, ...heads)),
    make('tbody', null, ...rows),
  );
}

/** @param {Plot} plot */
function figure(plot) {
  const svg = draw('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: 'none',
    role: 'img',
  });
  for (const part of [0.25, 0.5, 0.75]) {
    svg.append(
      draw('line', { class: 'grid', x1: WIDTH * part, x2: WIDTH * part, y1: 0, y2: HEIGHT }),
    );
  }
  svg.append(draw('line', { class: 'grid', x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2 }));
  svg.append(draw('line', { class: 'base', x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1 }));
  plot.lines.forEach((line, at) =>
    svg.append(
      draw('path', { class: `plot-line line-${at}`, 'data-line': line.name, fill: 'none' }),
    )
  );
  return make(
    'figure',
    { 'data-plot': plot.name },
    make(
      'figcaption',
      null,
      make('b', null, plot.title),
      make('span.spring'),
      make('span.current.number'),
    ),
    make(
      'div.frame',
      null,
      svg,
      make('span.top.number.hint'),
      make('span.ago.hint', null, '−2 min'),
    ),
  );
}

/**
 * Where the daemon does not count it, the sum over its clients.
 * @param {any} look
 * @returns {number | null}
 */
function bytesSent(look) {
  if (look.perSecond?.bytesSent != null) return look.perSecond.bytesSent;
  if (!look.clients) return null;
  return look.clients.reduce(
    (/** @type {number} */ sum, /** @type {any} */ client) => sum + (client.bytesPerSecond ?? 0),
    0,
  );
}

/**
 * The next number that is 1, 2 or 5 with zeros.
 * @param {number} value
 */
function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const first = value / power;
  return power * (first <= 1 ? 1 : first <= 2 ? 2 : first <= 5 ? 5 : 10);
}
