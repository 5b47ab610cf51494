"""The other side of CrossCheckTests.swift: the same items through cbor2.

canonical                reads lines of hex; prints, for each, its canonical encoding and its repr
generate SEED COUNT      prints lines of hex: items as another implementation may send them, with
                         indefinite lengths, long heads and floats of every width
compare                  reads lines of two hex words; prints "same", or how the two items differ
"""

import random
import struct
import sys

import cbor2


def canonical(data):
    return cbor2.dumps(cbor2.loads(data), canonical=True)


def head(rng, major, argument, preferred):
    widths = [w for w in (0, 1, 2, 4, 8) if argument < (24 if w == 0 else 1 << 8 * w)]
    width = widths[0] if preferred else rng.choice(widths)
    if width == 0:
        return bytes([major << 5 | argument])
    return bytes([major << 5 | 23 + width.bit_length()]) + argument.to_bytes(width, "big")


def any_head(rng, major, argument):
    return head(rng, major, argument, rng.random() < 0.7)


def number(rng):
    return rng.getrandbits(rng.randint(1, 64))


def random_text(rng, limit):
    planes = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF))
    length = rng.randint(0, limit)
    return "".join(chr(rng.randint(*rng.choice(planes))) for _ in range(length))


def string(rng, major, pieces):
    if len(pieces) == 1 and rng.random() < 0.7:
        return any_head(rng, major, len(pieces[0])) + pieces[0]
    chunks = b"".join(any_head(rng, major, len(piece)) + piece for piece in pieces)
    return bytes([major << 5 | 31]) + chunks + b"\xff"


def random_string(rng, major, limit):
    count = rng.choice((1, 1, 1, 0, 2, 3))
    if major == 2:
        return string(rng, 2, [rng.randbytes(rng.randint(0, limit)) for _ in range(count)])
    return string(rng, 3, [random_text(rng, limit).encode() for _ in range(count)])


def random_float(rng):
    width, code = rng.choice(((2, 0xF9), (4, 0xFA), (8, 0xFB)))
    special = {
        2: (0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 1, 0x3FF, 0x400, 0x7BFF),
        4: (0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x7F7FFFFF, 0x33000000, 0x38800000),
        8: (0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 1, 0x3FF0 << 48, 0x7FEF << 48),
    }
    bits = rng.choice(special[width]) if rng.random() < 0.3 else rng.getrandbits(8 * width)
    if rng.random() < 0.3 and width == 8:
        bits = int.from_bytes(struct.pack(">d", rng.randint(-100000, 100000) / 8), "big")
    return bytes([code]) + bits.to_bytes(width, "big")


def key(rng):
    kind = rng.randrange(4)
    if kind < 2:
        return any_head(rng, kind, number(rng))
    return random_string(rng, kind, 4)


def collection(rng, major, entries):
    if rng.random() < 0.5:
        return any_head(rng, major, len(entries)) + b"".join(entries)
    return bytes([major << 5 | 31]) + b"".join(entries) + b"\xff"


def item(rng, depth):
    kind = rng.randrange(12 if depth > 0 else 7)
    if kind < 2:
        return any_head(rng, kind, number(rng))
    if kind < 4:
        return random_string(rng, kind, 30)
    if kind == 4:
        return random_float(rng)
    if kind == 5:
        return bytes([rng.randint(0xF4, 0xF7)])
    if kind == 6:
        simple = rng.choice([*range(20), *range(32, 256)])
        return bytes([0xE0 | simple]) if simple < 20 else bytes([0xF8, simple])
    if kind < 9:
        return collection(rng, 4, [item(rng, depth - 1) for _ in range(rng.randint(0, 5))])
    if kind < 11:
        pairs = {}
        for _ in range(rng.randint(0, 5)):
            name = key(rng)
            pairs.setdefault(canonical(name), name + item(rng, depth - 1))
        return collection(rng, 5, list(pairs.values()))
    # 2 and 3 are bignums: within 64 bits cbor2 reads them as the integers they are.
    if rng.random() < 0.3:
        return any_head(rng, 6, rng.choice((2, 3))) + string(
            rng, 2, [number(rng).to_bytes(8, "big")]
        )
    return any_head(rng, 6, rng.choice((6, 200, 70000, 1 << 40, (1 << 64) - 1))) + item(
        rng, depth - 1
    )


def difference(left, right):
    left, right = bytes.fromhex(left), bytes.fromhex(right)
    if canonical(left) == canonical(right):
        return "same"
    return f"{cbor2.loads(left)!r} became {cbor2.loads(right)!r}"


def main(command, *arguments):
    if command == "canonical":
        for line in sys.stdin:
            data = bytes.fromhex(line)
            print(canonical(data).hex(), ascii(cbor2.loads(data)))
    elif command == "generate":
        rng = random.Random(int(arguments[0]))
        for _ in range(int(arguments[1])):
            print(item(rng, 4).hex())
    elif command == "compare":
        for line in sys.stdin:
            print(difference(*line.split()).encode("ascii", "backslashreplace").decode())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
