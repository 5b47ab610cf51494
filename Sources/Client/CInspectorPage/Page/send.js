// A form that sends an action: its fields come from the schema, or the whole is JSON.

import { buttonById, byId, inputById, make, say } from './dom.js';
import { caseJSON, example, isUnnamed, parse, Schema } from './schema.js';

/** @typedef {import('./connection.js').Connection} Connection */
/** @typedef {import('./connection.js').Refusal} Refusal */
/** @typedef {import('./schema.js').Kind} Kind */
/** @typedef {import('./schema.js').Field} Field */
/** @typedef {{element: HTMLElement, read: () => unknown}} Entry what a person fills in, and its value */

const DEEPEST = 4;

const DOCUMENT = ['set', 'merge', 'remove', 'increment', 'append', 'insert', 'test'];

export class Send {
  /**
   * @param {Connection} connection
   * @param {() => string} place the selected path
   */
  constructor(connection, place) {
    this.connection = connection;
    this.place = place;
    this.schema = new Schema(null);
    this.isDocument = true;
    /** @type {Entry | null} */
    this.entry = null;
    /** The selected path that was filled in, which a person may have changed since. */
    this.filled = '';
    this.select = /** @type {HTMLSelectElement} */ (byId('send-action'));
    this.raw = inputById('send-raw');
    this.text = /** @type {HTMLTextAreaElement} */ (byId('send-text'));
    this.outcome = byId('send-outcome');
    this.select.addEventListener('input', () => this.fields());
    this.raw.addEventListener('input', () => this.rawChanged());
    const form = byId('send');
    form.addEventListener('input', () => this.preview());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.submit();
    });
    this.text.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && event.ctrlKey) void this.submit();
    });
  }

  /** @param {{schema: unknown, isDocument: boolean}} hello */
  take(hello) {
    this.isDocument = hello.isDocument;
    this.schema = new Schema(hello.schema);
    say(
      byId('schema'),
      hello.schema
        ? this.schema.text()
        : 'The daemon does not say what its state and actions are made of.',
    );
    const chosen = this.select.value;
    const cases = this.cases();
    this.select.replaceChildren(
      ...cases.map((one) => make('option', { value: one.name }, one.name)),
    );
    if (cases.some((one) => one.name === chosen)) {
      this.select.value = chosen;
      if (this.entry) return;
    }
    if (cases.length === 0) {
      this.raw.checked = true;
      this.rawChanged();
    }
    this.fields();
  }

  /** The actions there are. */
  cases() {
    const cases = this.schema.cases(this.schema.action);
    if (cases || !this.isDocument) return cases ?? [];
    return DOCUMENT.map((name, id) => ({
      id,
      name,
      fields: [
        { id: 1, name: 'path', kind: 'path' },
        ...(name === 'remove' ? [] : [{
          id: 2,
          name: name === 'increment' ? 'by' : 'value',
          kind: name === 'increment' ? ['optional', 'value'] : 'value',
        }]),
      ],
    }));
  }

  fields() {
    const one = this.cases().find((candidate) => candidate.name === this.select.value);
    const frame = byId('send-fields');
    if (!one) {
      frame.replaceChildren();
      this.entry = null;
      return;
    }
    const entries = one.fields.map((field) => this.field(field, 1));
    frame.replaceChildren(...entries.map(({ element }) => element));
    if (one.fields.length === 0) frame.append(make('p.hint', null, 'It carries nothing.'));
    this.entry = {
      element: frame,
      read: () => caseJSON(one, entries.map((entry) => entry.read())),
    };
    this.preview();
  }

  /**
   * @param {Field} field
   * @param {number} depth
   * @returns {Entry}
   */
  field(field, depth) {
    const kind = this.schema.present(field.kind);
    const isOptional = kind !== field.kind;
    const name = isUnnamed(field) ? this.schema.name(kind) : field.name;
    const cases = this.schema.cases(kind);
    if (cases && depth < DEEPEST) return this.choice(name, cases, isOptional, depth);
    const structure = Array.isArray(kind) && kind[0] === 'type'
      ? this.schema.types.get(kind[1])?.fields
      : undefined;
    if (structure && depth < DEEPEST && !isOptional) return this.structure(name, structure, depth);
    const input = /** @type {HTMLInputElement} */ (make('input', {
      'data-field': field.name,
      placeholder: example(field.kind),
      spellcheck: 'false',
      autocomplete: 'off',
      'aria-label': name,
    }));
    if (kind === 'path' && field.name === 'path') {
      this.filled = this.place();
      input.value = this.filled;
    }
    const element = make(
      'label.field',
      null,
      make('span.name', null, name),
      make('span.hint', null, this.schema.name(field.kind)),
      input,
    );
    const read = () => {
      if (input.value === '' && (isOptional || (kind !== 'path' && kind !== 'text'))) {
        if (isOptional) return undefined;
        throw new Error(`${name} is empty.`);
      }
      return parse(input.value, kind, kind === 'value');
    };
    return { element, read };
  }

  /**
   * @param {string} name
   * @param {Field[]} fields
   * @param {number} depth
   * @returns {Entry}
   */
  structure(name, fields, depth) {
    const entries = fields.map((field) => this.field(field, depth + 1));
    const element = make(
      'fieldset',
      null,
      make('legend', null, name),
      ...entries.map((entry) => entry.element),
    );
    const read = () => {
      const given = fields.map((field, at) => [field.name, entries[at].read()]).filter((
        [, value],
      ) => value !== undefined);
      return Object.fromEntries(given);
    };
    return { element, read };
  }

  /**
   * A choice among cases, and the fields of the one that is chosen.
   * @param {string} name
   * @param {import('./schema.js').Case[]} cases
   * @param {boolean} isOptional
   * @param {number} depth
   * @returns {Entry}
   */
  choice(name, cases, isOptional, depth) {
    const options = cases.map((one) => make('option', { value: one.name }, one.name));
    if (isOptional) options.unshift(make('option', { value: '' }, '(none)'));
    const select = /** @type {HTMLSelectElement} */ (make(
      'select',
      { 'aria-label': name, 'data-choice': name },
      ...options,
    ));
    const inner = make('div.inner');
    /** @type {Entry[]} */
    let entries = [];
    const chosen = () => cases.find((one) => one.name === select.value);
    const choose = () => {
      entries = chosen()?.fields.map((field) => this.field(field, depth + 1)) ?? [];
      inner.replaceChildren(...entries.map((entry) => entry.element));
    };
    select.addEventListener('input', choose);
    choose();
    const element = make('fieldset', null, make('legend', null, name), select, inner);
    const read = () => {
      const one = chosen();
      return one ? caseJSON(one, entries.map((entry) => entry.read())) : undefined;
    };
    return { element, read };
  }

  /** Fills in the path that is selected now, unless another was typed. */
  fillPath() {
    const field = byId('send-fields').querySelector('[data-field=path]');
    const input = /** @type {HTMLInputElement | null} */ (field);
    if (!input || input.value !== this.filled) return;
    this.filled = this.place();
    input.value = this.filled;
    this.preview();
  }

  rawChanged() {
    const isRaw = this.raw.checked;
    if (isRaw && this.entry && this.text.value.trim() === '') {
      try {
        this.text.value = JSON.stringify(this.entry.read(), null, 2);
      } catch {
        this.text.value = '';
      }
    }
    this.text.hidden = !isRaw;
    byId('send-fields').hidden = isRaw;
    this.select.disabled = isRaw;
    this.preview();
  }

  /** The action as it would be sent, or a thrown Error. */
  read() {
    if (!this.raw.checked) return this.entry?.read();
    try {
      return JSON.parse(this.text.value);
    } catch (error) {
      throw new Error(`That is not JSON: ${/** @type {Error} */ (error).message}.`);
    }
  }

  preview() {
    let text = '';
    if (!this.raw.checked) {
      try {
        text = JSON.stringify(this.read()) ?? '';
      } catch {
        text = '';
      }
    }
    say(byId('send-preview'), text);
  }

  async submit() {
    const button = buttonById('send-button');
    this.outcome.dataset.outcome = '';
    say(this.outcome, '');
    try {
      const action = this.read();
      button.disabled = true;
      const answer = await this.connection.ask('send', { action });
      const done = answer.outcome === 'reduced' ? 'Done' : `Done: ${answer.outcome}`;
      this.outcome.dataset.outcome = answer.outcome;
      say(this.outcome, `✓ ${done}, revision ${answer.revision}.`);
    } catch (error) {
      const code = /** @type {Partial<Refusal>} */ (error).code;
      this.outcome.dataset.outcome = 'refused';
      this.outcome.dataset.code = code ?? 'form';
      say(this.outcome, `✗ ${/** @type {Error} */ (error).message}${code ? ` (${code})` : ''}`);
    } finally {
      button.disabled = false;
    }
  }
}
