"""A matcher for the part of CDDL (RFC 8610) that lockstep.cddl uses, on what cbor2 decodes.

`check_vectors.py` holds it against cddl-verifier, so that neither is believed alone. Of other tools,
pycddl 0.6.4 passes every array where a choice has arrays with `* any`, reads `undefined` as null and
overflows its stack on recursive rules; zcbor 0.9.1 does not parse labels that are names of rules.
"""

import re

import cbor2

TOKEN = re.compile(
    r'\s*(?:;[^\n]*\s*)*("[^"]*"|\d+|[A-Za-z][\w-]*|=>|\.\.|\.size|[=/\[\]{}(),:*+?])'
)


class Grammar:
    def __init__(self, text):
        text = re.sub(r";[^\n]*", "", text)
        self.tokens = TOKEN.findall(text)
        if re.sub(r"\s", "", TOKEN.sub("", text)):
            raise ValueError("something in the grammar that is no token")
        self.at = 0
        self.rules = {}
        while self.at < len(self.tokens):
            name = self.take()
            self.take("=")
            if name in self.rules:
                raise ValueError(f"two rules {name}")
            self.rules[name] = self.type()
        for name in self.names:
            if name not in self.rules and name not in PRIMITIVES:
                raise ValueError(f"no rule {name}")

    # MARK: Parsing

    names = ()

    def peek(self, ahead=0):
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def take(self, expected=None):
        token = self.peek()
        if token is None or expected is not None and token != expected:
            raise ValueError(f"expected {expected}, found {token}")
        self.at += 1
        return token

    def type(self):
        choices = [self.operand()]
        while self.peek() == "/":
            self.take()
            choices.append(self.operand())
        return ("choice", choices)

    def operand(self):
        first = self.primary()
        if self.peek() == "..":
            self.take()
            return ("range", first[1], self.primary()[1])
        if self.peek() == ".size":
            self.take()
            return ("size", first, self.primary()[1])
        return first

    def primary(self):
        token = self.take()
        if token in ("[", "{"):
            group = self.group()
            self.take({"[": "]", "{": "}"}[token])
            return ("array" if token == "[" else "map", group)
        if token == "(":
            inner = self.type()
            self.take(")")
            return inner
        if token.isdigit():
            return ("literal", int(token))
        if token.startswith('"'):
            return ("literal", token[1:-1])
        self.names = (*self.names, token)
        return ("rule", token)

    def group(self):
        entries = []
        while self.peek() not in ("]", "}", ")"):
            occurrence = self.take() if self.peek() in ("*", "+", "?") else None
            if occurrence and self.peek() == "(":
                self.take()
                entries.append((occurrence, None, self.group()))
                self.take(")")
            else:
                if self.peek(1) == ":":
                    self.at += 2
                value, key = self.type(), None
                if self.peek() == "=>":
                    self.take()
                    key, value = value, self.type()
                entries.append((occurrence, key, value))
            if self.peek() == ",":
                self.take()
        return entries

    # MARK: Matching

    def matches(self, rule, item):
        return self.fits(("rule", rule), item)

    def fits(self, type, item):
        match type:
            case ("choice", choices):
                return any(self.fits(choice, item) for choice in choices)
            case ("rule", name):
                if name in self.rules:
                    return self.fits(self.rules[name], item)
                return PRIMITIVES[name](item)
            case ("literal", value):
                return item.__class__ is value.__class__ and item == value
            case ("range", low, high):
                return is_integer(item) and low <= item <= high
            case ("size", inner, size):
                return self.fits(inner, item) and len(item) == size
            case ("array", group):
                return isinstance(item, (list, tuple)) and len(item) in set(
                    self.ends(group, item, 0)
                )
            case ("map", group):
                return isinstance(item, dict) and self.fits_map(group, item)

    def ends(self, group, items, start):
        """Where the entries of a group may end that begin at `start`."""
        if not group:
            yield start
            return
        (occurrence, _, content), rest = group[0], group[1:]
        if occurrence in ("*", "?"):
            yield from self.ends(rest, items, start)
        for end in self.once(content, items, start):
            if occurrence in ("*", "+") and end > start:
                yield from self.ends([("*", None, content), *rest], items, end)
            else:
                yield from self.ends(rest, items, end)

    def once(self, content, items, start):
        if isinstance(content, list):
            yield from self.ends(content, items, start)
        elif start < len(items) and self.fits(content, items[start]):
            yield start + 1

    def fits_map(self, group, item):
        def fitting(key_type, value_type):
            pairs = [(key, value) for key, value in item.items() if self.fits(key_type, key)]
            return [key for key, value in pairs if self.fits(value_type, value)]

        matched = [(occurrence, fitting(key, value)) for occurrence, key, value in group]
        known = {(key.__class__, key) for _, keys in matched for key in keys}
        return len(known) == len(item) and all(
            keys or occurrence in ("*", "?") for occurrence, keys in matched
        )


def is_integer(item):
    return isinstance(item, int) and not isinstance(item, bool)


PRIMITIVES = {
    "any": lambda item: True,
    "uint": lambda item: is_integer(item) and item >= 0,
    "int": is_integer,
    "bool": lambda item: isinstance(item, bool),
    "null": lambda item: item is None,
    "undefined": lambda item: item is cbor2.undefined,
    "float": lambda item: isinstance(item, float),
    "tstr": lambda item: isinstance(item, str),
    "bstr": lambda item: isinstance(item, bytes),
}
