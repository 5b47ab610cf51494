// The bar at the top: which daemon it is, how the connection is, and what is done to all of it:
// undo, redo, pause.

import { buttonById, byId, say } from './dom.js';
import { Drawing } from './drawing.js';
import * as format from './format.js';

/** @typedef {import('./connection.js').Connection} Connection */
/** @typedef {import('./connection.js').Refusal} Refusal */

const NOTICE = 8000;
const WORDS = /** @type {Record<string, string>} */ ({
  connecting: 'connecting',
  live: 'live',
  stale: 'lost, coming back',
  closed: 'closed',
  gone: 'inspector gone',
});

const LOST = 'The connection to the daemon is lost, and comes back by itself. ' +
  'What is shown is what was last known.';
const GONE = 'The inspector has ended, or cannot be reached. ' +
  'Start lockstep inspect again, and open the address that it prints.';
const PAUSED = 'The daemon is paused: it does no action until it is resumed.';

export const FOR_ALL_RIGHTS = 'This is for those who may do everything.';
const FOR_ADMINISTRATORS = 'This is for those who may administer the daemon.';

export class DaemonBar {
  /** @param {Connection} connection */
  constructor(connection) {
    this.connection = connection;
    this.state = 'connecting';
    this.message = '';
    /** @type {any} */
    this.look = null;
    this.total = 0;
    this.revision = 0;
    this.noticeTimer = 0;
    this.drawing = new Drawing(() => this.draw(), 100);
    buttonById('undo').addEventListener('click', () => void this.undo('undo'));
    buttonById('redo').addEventListener('click', () => void this.undo('redo'));
    buttonById('pause').addEventListener('click', () => void this.pause());
  }

  /** @param {any} hello */
  takeHello(hello) {
    say(byId('daemon-socket'), hello.socket ?? '');
    say(byId('daemon-version'), hello.version ? `version ${hello.version}` : '');
    document.title = `${String(hello.socket ?? '').split('/').pop()} · Lockstep inspector`;
  }

  /** @param {any} look */
  takeLook(look) {
    this.look = look;
    this.total = Math.max(this.total, look.status?.actions ?? 0);
    this.reached(look.status?.revision ?? 0);
  }

  /** @param {number} revision */
  reached(revision) {
    this.revision = Math.max(this.revision, revision);
    this.drawing.soon();
  }

  /**
   * The sequence number of the newest action.
   * @param {number} total
   */
  counted(total) {
    this.total = Math.max(this.total, total);
    this.drawing.soon();
  }

  /** Everything may be different. */
  reset() {
    this.total = 0;
    this.revision = 0;
    this.look = null;
    this.drawing.next();
  }

  /**
   * @param {string} state
   * @param {string} [message]
   */
  connect(state, message = '') {
    this.state = state;
    this.message = message;
    this.drawing.next();
  }

  get isPaused() {
    const paused = this.look?.status?.pausedMs;
    return paused !== null && paused !== undefined;
  }

  draw() {
    const status = this.look?.status ?? {};
    say(byId('revision'), format.count(this.revision));
    say(
      byId('total'),
      this.total > 0 || status.actions !== undefined ? format.count(this.total) : '–',
    );
    byId('total').dataset.total = String(this.total);
    byId('revision').dataset.revision = String(this.revision);
    say(byId('rate'), format.rate(this.look?.perSecond?.actions));
    say(byId('rejected'), format.count(status.rejected));
    const connection = byId('connection');
    connection.dataset.state = this.state;
    say(connection, WORDS[this.state] ?? this.state);
    const pause = buttonById('pause');
    say(pause, this.isPaused ? 'Resume' : 'Pause');
    pause.setAttribute('aria-pressed', String(this.isPaused));
    const may = {
      undo: status.mayDoAll !== false,
      redo: status.mayDoAll !== false,
      pause: status.mayAdminister !== false,
    };
    for (const [id, allowed] of Object.entries(may)) {
      const button = buttonById(id);
      button.disabled = this.state !== 'live' || !allowed;
      button.title = allowed ? '' : id === 'pause' ? FOR_ADMINISTRATORS : FOR_ALL_RIGHTS;
    }
    this.drawBanner(status.pausedMs);
  }

  /** @param {number | null | undefined} pausedMs */
  drawBanner(pausedMs) {
    const banner = byId('banner');
    const reason = this.message || 'it gave no reason.';
    const text = {
      stale: `${LOST} ${this.message}`.trimEnd(),
      closed: `The daemon has closed the connection: ${reason}`,
      gone: GONE,
    }[this.state] ?? (this.isPaused ? PAUSED : '');
    banner.hidden = text === '';
    banner.dataset.kind = this.state === 'live' && pausedMs !== null ? 'paused' : this.state;
    say(banner, text);
  }

  /**
   * Says something that passes.
   * @param {string} text
   */
  notify(text) {
    const notice = byId('notice');
    say(notice, text);
    clearTimeout(this.noticeTimer);
    this.noticeTimer = window.setTimeout(() => say(notice, ''), NOTICE);
  }

  /** @param {'undo' | 'redo'} ask */
  async undo(ask) {
    try {
      const answer = await this.connection.ask(ask, { count: 1 });
      this.reached(answer.revision);
      const done = ask === 'undo' ? 'Undone' : 'Done again';
      const [revision, of] = [format.count(answer.revision), format.count(answer.of)];
      this.notify(`${done}: revision ${revision} is what ${of} was.`);
    } catch (error) {
      this.notify(/** @type {Error} */ (error).message);
    }
  }

  async pause() {
    try {
      const answer = await this.connection.ask(this.isPaused ? 'resume' : 'pause', {});
      if (this.look?.status) this.look.status.pausedMs = answer.paused ? 0 : null;
      this.notify(answer.paused ? 'Paused.' : 'Resumed.');
      this.drawing.next();
    } catch (error) {
      this.notify(/** @type {Error} */ (error).message);
    }
  }
}
