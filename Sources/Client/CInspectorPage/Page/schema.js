// The daemon's schema: its types as text, and the form in which an action is written as JSON.

/** @typedef {string | any[]} Kind */
/** @typedef {{id: number, name: string, kind: Kind}} Field */
/** @typedef {{id: number, name: string, fields: Field[]}} Case */
/** @typedef {{cases?: Case[], fields?: Field[]}} Definition */

export class Schema {
  /** @param {any} given as the program gives it, in names or in arrays */
  constructor(given) {
    /** @type {Kind} */
    this.state = given?.state ?? 'value';
    /** @type {Kind} */
    this.action = given?.action ?? 'value';
    /** @type {Map<string, Definition>} */
    this.types = new Map(
      Object.entries(given?.types ?? {}).map(([name, type]) => [name, definition(type)]),
    );
  }

  /**
   * The cases of a kind, if it has any.
   * @param {Kind} kind
   * @returns {Case[] | null}
   */
  cases(kind) {
    const present = this.present(kind);
    return Array.isArray(present) && present[0] === 'type'
      ? this.types.get(present[1])?.cases ?? null
      : null;
  }

  /**
   * What a kind is when it is there.
   * @param {Kind} kind
   * @returns {Kind}
   */
  present(kind) {
    return Array.isArray(kind) && kind[0] === 'optional' ? this.present(kind[1]) : kind;
  }

  /**
   * @param {Kind} kind
   * @returns {string}
   */
  name(kind) {
    if (!Array.isArray(kind)) return kind;
    const [form, first, second] = kind;
    switch (form) {
      case 'type':
        return first;
      case 'optional':
        return `${this.name(first)}?`;
      case 'array':
        return `[${this.name(first)}]`;
      case 'map':
        return `[${this.name(first)}: ${this.name(second)}]`;
      default:
        return JSON.stringify(kind);
    }
  }

  /** All of it as text. */
  text() {
    const lines = [`state   ${this.name(this.state)}`, `action  ${this.name(this.action)}`];
    for (const [name, { cases, fields }] of this.types) {
      lines.push('', `${cases ? 'enum' : 'struct'} ${name}`);
      for (const field of fields ?? []) lines.push(`  ${field.name}: ${this.name(field.kind)}`);
      for (const one of cases ?? []) {
        const carried = one.fields.map((field) =>
          (isUnnamed(field) ? '' : `${field.name}: `) + this.name(field.kind)
        );
        lines.push(`  ${one.name}${carried.length ? `(${carried.join(', ')})` : ''}`);
      }
    }
    return lines.join('\n');
  }
}

/**
 * @param {any} type
 * @returns {Definition}
 */
function definition(type) {
  const field = (/** @type {any} */ one) =>
    Array.isArray(one) ? { id: one[0], name: one[1], kind: one[2] } : one;
  const item = (/** @type {any} */ one) =>
    Array.isArray(one)
      ? { id: one[0], name: one[1], fields: (one[2] ?? []).map(field) }
      : { ...one, fields: (one.fields ?? []).map(field) };
  if (Array.isArray(type)) {
    return type[0] === 'enum' ? { cases: type[1].map(item) } : { fields: type[1].map(field) };
  }
  const { cases, fields, enum: ofEnum, structure, struct } = type;
  const those = cases ?? ofEnum;
  return those
    ? { cases: those.map(item) }
    : { fields: (fields ?? structure ?? struct ?? []).map(field) };
}

/** @param {Field} field */
export function isUnnamed(field) {
  return field.name === '' || /^_\d+$/.test(field.name);
}

/**
 * A case with what it carries, as the program takes it: a text if that is nothing, one unnamed
 * value as it is, several as an array, else an object. What is undefined is left out.
 * @param {Case} one
 * @param {unknown[]} values
 */
export function caseJSON(one, values) {
  if (one.fields.length === 0) return one.name;
  if (one.fields.length === 1 && isUnnamed(one.fields[0])) return { [one.name]: values[0] ?? null };
  if (one.fields.every(isUnnamed)) return { [one.name]: values.map((value) => value ?? null) };
  const given = one.fields.map((field, at) => [field.name, values[at]]).filter(([, value]) =>
    value !== undefined
  );
  return { [one.name]: Object.fromEntries(given) };
}

/**
 * What a person typed, as a value of a kind; or a thrown Error with a sentence.
 * @param {string} text
 * @param {Kind} kind
 * @param {boolean} isText whether text that is no JSON is meant as it stands
 */
export function parse(text, kind, isText) {
  if (kind === 'text' || kind === 'path' || kind === 'bytes') {
    return kind === 'path' && text.startsWith('[') ? JSON.parse(text) : text;
  }
  try {
    return JSON.parse(text);
  } catch {
    if (isText && !/^[[{"]/.test(text.trim())) return text;
    throw new Error(`“${text}” is not JSON.`);
  }
}

/**
 * An example of a kind.
 * @param {Kind} kind
 * @returns {string}
 */
export function example(kind) {
  if (Array.isArray(kind)) {
    switch (kind[0]) {
      case 'optional':
        return `${example(kind[1])} (optional)`;
      case 'array':
        return '[…]';
      default:
        return '{…}';
    }
  }
  switch (kind) {
    case 'int':
    case 'integer':
      return '-12';
    case 'uint':
    case 'unsigned':
      return '12';
    case 'double':
      return '1.5';
    case 'bool':
      return 'true';
    case 'text':
      return 'text as it stands';
    case 'bytes':
      return 'base64';
    case 'path':
      return '/path/to/it';
    default:
      return 'JSON, or text';
  }
}
