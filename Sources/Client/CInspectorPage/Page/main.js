// Joins the parts of the page: what is pushed goes to each part that shows some of it.

import { Action } from './action.js';
import { Actions } from './actions.js';
import { Clients } from './clients.js';
import { Connection } from './connection.js';
import { DaemonBar, FOR_ALL_RIGHTS } from './daemon.js';
import { byId, inputById } from './dom.js';
import { Drawing } from './drawing.js';
import { Effects } from './effects.js';
import { installKeys } from './keys.js';
import { State } from './nodes.js';
import { PlaceHistory } from './place.js';
import { Plots } from './plots.js';
import { Send } from './send.js';
import { Tabs } from './tabs.js';
import { Timeline } from './timeline.js';
import { Tree } from './tree.js';

const connection = new Connection();
const bar = new DaemonBar(connection);
const notify = (/** @type {string} */ text) => bar.notify(text);

/** @type {State} */
const state = new State(connection, () => tree.drawing.soon());
/** @type {Tree} */
const tree = new Tree(state, (path) => {
  place.select(path);
  actions.placeChanged();
});
const timeline = new Timeline(connection, (revision) => state.show(revision), notify);
/** @type {Actions} */
const actions = new Actions(
  (record) => void action.show(record, actions.active ?? -1),
  () => tree.path,
);
const go = {
  select: (/** @type {number} */ sequence) => {
    tabs.show(0);
    actions.select(sequence);
  },
  show: (/** @type {number} */ revision) => timeline.show(revision),
  reveal: (/** @type {string} */ path) => void reveal(path),
  followed: (/** @type {import('./nodes.js').Record_} */ record) => actions.followed(record),
  notify,
};
const action = new Action(connection, go);
const place = new PlaceHistory(connection, go);
const effects = new Effects(connection, go);
const clients = new Clients();
const plots = new Plots();
const send = new Send(connection, () => tree.path);
const tabs = new Tabs((name) => {
  if (name === 'plots') plots.drawing.next();
  if (name === 'actions') actions.drawing.next();
  if (name === 'send') send.fillPath();
});

// The places whose values are in view: told to the program when they are others.

let seen = '';
let isTelling = false;
const telling = new Drawing(() => void tell(), 100);
/** @type {string[]} */
let inView = [];

tree.isSeen = (paths) => {
  inView = paths;
  if (paths.join('\n') !== seen) telling.soon();
};

async function tell() {
  if (isTelling) {
    telling.soon();
    return;
  }
  const paths = inView;
  const text = paths.join('\n');
  if (text === seen || bar.state !== 'live') return;
  isTelling = true;
  seen = text;
  state.keepTold(paths);
  try {
    await connection.ask('see', { paths });
  } catch {
    seen = '';
    telling.soon();
  } finally {
    isTelling = false;
  }
}

const REFRESH = 700;
const refreshing = new Drawing(() => void refresh(), REFRESH);

async function refresh() {
  refreshing.slowDown(await state.refresh(), REFRESH);
  if (state.stale.size > 0 && !state.past) refreshing.soon();
}

/** Asks for everything: at the beginning, and when the connection is back. */
async function reset() {
  seen = '';
  bar.reset();
  try {
    const hello = await connection.ask('hello');
    bar.takeHello(hello);
    send.take(hello);
  } catch (error) {
    notify(/** @type {Error} */ (error).message);
    return;
  }
  timeline.denied = null;
  void connection.ask('past').then((past) => timeline.take(past), () => {});
  void connection.ask('log', { limit: 200 }).then((answer) => {
    actions.reset(answer.records);
    bar.counted(actions.total);
    state.staleAll();
    refreshing.soon();
  }, (error) => actions.refuse(error.message));
  await state.reset();
  state.staleAll();
  refreshing.soon();
  if (timeline.shown !== null) timeline.show(timeline.shown);
  place.select(tree.path);
  tree.drawing.next();
}

connection.on('lost', () => bar.connect('gone'));
connection.on('connection', ({ state: now, message }) => {
  bar.connect(now, message);
  if (now === 'live') void reset();
});
connection.on('values', ({ values }) => {
  state.takeValues(values);
  refreshing.soon();
});
connection.on('log', (push) => {
  actions.take(push);
  action.tellFollowed();
  bar.counted(push.total);
  const newest = push.records.at(-1)?.revision ?? 0;
  bar.reached(newest);
  timeline.reached(newest);
  state.takeRecords(push.records, push.missed);
  place.take(push.records, push.missed);
  refreshing.soon();
});
connection.on('denied', ({ what, message }) => {
  if (what === 'log') actions.refuse(message);
});
connection.on('look', (push) => {
  const { look } = push;
  // Without the log, only the revision says that something has changed.
  if (actions.refusal !== null && look.status && look.status.revision !== bar.revision) {
    state.staleAll();
    place.take([], 1);
  }
  bar.takeLook(look);
  // A daemon of a former version says no word on it.
  if (look.status && 'mayDoAll' in look.status) {
    timeline.deny(look.status.mayDoAll === false ? FOR_ALL_RIGHTS : null);
  }
  if (push.past) timeline.take(push.past);
  effects.take(look.effects);
  clients.take(look.clients);
  plots.take(push);
  refreshing.soon();
});

/**
 * Shows a place in the tree, and selects it.
 * @param {string} path
 */
async function reveal(path) {
  try {
    const found = await state.reveal(path);
    tree.go(found.path);
  } catch (error) {
    notify(/** @type {Error} */ (error).message);
  }
}

byId('goto').addEventListener('submit', (event) => {
  event.preventDefault();
  const { value } = inputById('goto-path');
  void reveal(value === '/' ? '' : value);
});

installKeys([
  {
    key: '/',
    does: 'filter the actions',
    run: () => {
      tabs.show(0);
      inputById('filter').focus();
    },
  },
  { key: 'g', does: 'go to a path', run: () => inputById('goto-path').focus() },
  { key: 't', does: 'go to the tree', run: () => tree.go(tree.active) },
  {
    key: 'a',
    does: 'go to the actions',
    run: () => {
      tabs.show(0);
      byId('actions').focus();
    },
  },
  { key: 's', does: 'go to the slider', run: () => inputById('slider').focus() },
  { key: '[', does: 'one revision back', run: () => timeline.step(-1) },
  { key: ']', does: 'one revision forward', run: () => timeline.step(1) },
  { key: 'n', does: 'now: back from the past', run: () => timeline.show(null) },
  // A key alone changes nothing: the state is everybody's.
  { key: 'u', does: 'go to Undo', run: () => byId('undo').focus() },
  { key: 'p', does: 'go to Pause', run: () => byId('pause').focus() },
  ...['Actions', 'Effects', 'Clients', 'Plots', 'Send'].map((name, at) => ({
    key: String(at + 1),
    does: `show ${name}`,
    run: () => tabs.show(at, true),
  })),
]);

connection.open();
