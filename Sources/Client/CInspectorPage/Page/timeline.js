// The slider over the revisions of the past, and going back to one of them.

import { buttonById, byId, inputById, say } from './dom.js';
import { Drawing } from './drawing.js';
import * as format from './format.js';

/** @typedef {import('./connection.js').Connection} Connection */
/** @typedef {import('./connection.js').Refusal} Refusal */

const NO_PAST = 'The daemon holds no past state, or none yet.';

export class Timeline {
  /**
   * @param {Connection} connection
   * @param {(revision: number | null) => Promise<void>} show shows the state of a revision; null: the present
   * @param {(text: string) => void} notify
   */
  constructor(connection, show, notify) {
    this.connection = connection;
    this.showState = show;
    this.notify = notify;
    /** @type {number | null} */
    this.since = null;
    this.newest = 0;
    /** @type {number | null} the revision that is shown; null: the present */
    this.shown = null;
    /** @type {string | null} why going back is not allowed */
    this.denied = null;
    this.isShowing = false;
    this.slider = inputById('slider');
    this.number = inputById('time-revision');
    this.now = buttonById('now');
    this.jump = buttonById('jump');
    this.drawing = new Drawing(() => this.draw(), 100);
    this.slider.addEventListener('input', () => this.moved(Number(this.slider.value)));
    this.number.addEventListener(
      'change',
      () => this.moved(Number(this.number.value.replace(/\D/g, ''))),
    );
    this.now.addEventListener('click', () => this.show(null));
    this.jump.addEventListener('click', () => this.ask());
    byId('confirm-yes').addEventListener('click', () => void this.confirm());
    byId('confirm-no').addEventListener('click', () => this.cancel());
    byId('confirm').addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.cancel();
    });
  }

  /**
   * Takes in what past there is.
   * @param {{since: number | null, newest: number}} past
   */
  take(past) {
    this.since = past.since;
    this.newest = Math.max(past.newest, 0);
    if (this.since === null && this.shown !== null) this.show(null);
    this.drawing.soon();
  }

  /**
   * Whether this user may go back, as far as the daemon says so.
   * @param {string | null} reason why not
   */
  deny(reason) {
    if (reason === this.denied) return;
    this.denied = reason;
    if (reason !== null) this.cancel(false);
    this.drawing.soon();
  }

  /**
   * A newer revision came before the next word on the past.
   * @param {number} revision
   */
  reached(revision) {
    if (revision <= this.newest) return;
    this.newest = revision;
    this.drawing.soon();
  }

  /** @param {number} revision */
  moved(revision) {
    if (!Number.isFinite(revision)) return;
    const within = Math.max(this.since ?? 0, revision);
    this.show(within >= this.newest ? null : within);
  }

  /**
   * By how many revisions to go.
   * @param {number} step
   */
  step(step) {
    if (this.since !== null) this.moved((this.shown ?? this.newest) + step);
  }

  /** @param {number | null} revision */
  show(revision) {
    if (revision !== null && !this.isHeld(revision)) {
      void this.askThenShow(revision);
      return;
    }
    if (revision !== null && revision >= this.newest) revision = null;
    this.shown = revision;
    this.cancel(false);
    this.drawing.next();
    void this.follow();
  }

  /** @param {number} revision */
  isHeld(revision) {
    return this.since !== null && revision >= this.since;
  }

  /**
   * Asks what is held now, for a revision that was not when that was last said.
   * @param {number} revision
   */
  async askThenShow(revision) {
    try {
      this.take(await this.connection.ask('past'));
    } catch (error) {
      this.notify(/** @type {Error} */ (error).message);
      return;
    }
    if (this.isHeld(revision)) {
      this.show(revision);
      return;
    }
    if (this.shown === revision) this.show(null);
    if (this.since === null) {
      this.notify(NO_PAST);
    } else {
      const [gone, oldest] = [format.count(revision), format.count(this.since)];
      this.notify(`Revision ${gone} is not held any more; the oldest is ${oldest}.`);
    }
  }

  /** Shows the newest of what was asked for: while one is on its way, the slider has moved on. */
  async follow() {
    if (this.isShowing) return;
    this.isShowing = true;
    try {
      for (let done = NaN; done !== (this.shown ?? Infinity);) {
        done = this.shown ?? Infinity;
        await this.showState(this.shown);
      }
    } finally {
      this.isShowing = false;
    }
  }

  draw() {
    const hasPast = this.since !== null;
    const least = String(this.since ?? 0);
    const most = String(this.newest);
    if (this.slider.min !== least) this.slider.min = least;
    if (this.slider.max !== most) this.slider.max = most;
    this.slider.disabled = !hasPast || this.since === this.newest;
    this.slider.value = String(this.shown ?? this.newest);
    this.slider.setAttribute(
      'aria-valuetext',
      this.shown === null
        ? `now, revision ${this.newest}`
        : `the past, revision ${this.shown} of ${this.newest}`,
    );
    this.number.disabled = this.slider.disabled;
    if (document.activeElement !== this.number) {
      this.number.value = String(this.shown ?? this.newest);
    }
    say(byId('time-since'), hasPast ? format.count(this.since) : '–');
    say(byId('time-newest'), format.count(this.newest));
    this.now.disabled = this.shown === null;
    this.jump.disabled = this.shown === null || this.denied !== null;
    const reason = byId('time-reason');
    const why = hasPast
      ? (this.shown !== null && this.denied ? `Jump here is not possible. ${this.denied}` : null)
      : NO_PAST;
    reason.hidden = why === null;
    say(reason, why ?? '');
    byId('state').classList.toggle('past', this.shown !== null);
    byId('state').dataset.revision = this.shown === null ? 'now' : String(this.shown);
    const [shown, gap] = [this.shown ?? 0, this.newest - (this.shown ?? 0)].map(format.count);
    const past = `THE PAST: revision ${shown}, ${gap} before now · read only`;
    say(byId('moment'), this.shown === null ? 'now' : past);
  }

  ask() {
    if (this.shown === null) return;
    say(
      byId('confirm-text'),
      `Make the state what it was at revision ${format.count(this.shown)}, for every client?`,
    );
    byId('confirm').hidden = false;
    byId('confirm-yes').focus();
  }

  cancel(takesFocus = true) {
    if (byId('confirm').hidden) return;
    byId('confirm').hidden = true;
    if (takesFocus) this.jump.focus();
  }

  async confirm() {
    const revision = this.shown;
    if (revision === null) return;
    this.cancel(false);
    // At once: when the answer comes, the focus may be elsewhere, and is not taken from there.
    this.slider.focus();
    try {
      const answer = await this.connection.ask('jump', { revision });
      this.notify(
        `Jumped: revision ${format.count(answer.revision)} is what ${format.count(answer.of)} was.`,
      );
      this.reached(answer.revision);
      this.show(null);
    } catch (error) {
      const refusal = /** @type {Refusal} */ (error);
      if (refusal.code === 'denied') this.denied = refusal.message;
      this.notify(refusal.message);
      this.drawing.next();
    }
  }
}
