"""The writes of the Lua files, and each file's text without one of them.

The rule: one mutant lacks one write and nothing else, and what the script reads from the answer of
that write is still there: a pop becomes a look, a count is computed and not kept. So a mutant that
no test notices is a write that no test needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

# fmt: off
WRITES: Final = frozenset({
    "BITFIELD", "DEL", "HDEL", "HINCRBY", "HSET", "HSETNX", "INCRBY", "LPOP", "LPUSH", "LREM",
    "LTRIM", "PERSIST", "PEXPIRE", "RPOP", "RPUSH", "SADD", "SET", "SREM", "UNLINK", "XADD", "ZADD",
    "ZREM", "ZREMRANGEBYRANK",
})
# fmt: on
#: What a traced file's lines in the server's log begin with.
MARK: Final = "write:"
#: Writes of one call that can go one by one: what comes before them, and how many make one.
_PARTS: Final[Mapping[str, tuple[int, int]]] = {
    "HSET": (2, 2),
    "HDEL": (2, 1),
    "UNLINK": (1, 1),
    "DEL": (1, 1),
    # Of a record: name and value, at the end of the shared functions' arguments.
    "move": (3, 2),
    "conclude": (6, 2),
    "delay": (5, 2),
    "give_back": (6, 2),
}
_CALL: Final = re.compile(r"(?<![\w.:])(\w+)\(")
_OPAQUE: Final = re.compile(
    r"--\[\[.*?\]\]|--[^\n]*|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"", re.S
)


@dataclass(frozen=True)
class Mutant:
    """A file without one write: what is missing (`write`), where, and the text that is left.

    `call` numbers the calls of the file, as `traced` does.
    """

    file: str
    line: int
    write: str
    text: str
    call: int = 0

    def __str__(self) -> str:
        return f"{self.file}.lua:{self.line}: without {self.write}"


@dataclass(frozen=True)
class _Call:
    name: str
    start: int
    end: int
    args: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


def mutants(file: str, text: str, writers: frozenset[str]) -> Iterator[Mutant]:
    """Yield a file's mutants; `writers` are the shared functions that write."""
    for number, call in enumerate(_writing(text, writers)):
        head, commands = _head(text, call), _commands(call)
        instead = "do end" if _is_statement(text, call) else _answer(call, commands, head)
        if instead is not None:
            yield replace(
                _mutant(file, text, (call.start, call.end), instead, _shown(text, call)),
                call=number,
            )
        for mutant in _without_parts(file, text, call):
            yield replace(mutant, call=number)


def traced(file: str, text: str, writers: frozenset[str]) -> str:
    """Return a file that logs every write that it makes, as MARK, its name and the call's number.

    It logs to the server's log: what a script does to the store stays the same.
    """
    inserts: list[tuple[int, str]] = []
    for number, call in enumerate(_writing(text, writers)):
        log = f"redis.log(redis.LOG_WARNING, '{MARK}{file}.{number}')"
        if _is_statement(text, call):
            inserts.append((call.start, f"{log} "))
        else:
            inserts += [(call.start, f"select(2, {log}, "), (call.end, ")")]
    for at, more in sorted(inserts, reverse=True):
        text = text[:at] + more + text[at:]
    return text


def _writing(text: str, writers: frozenset[str]) -> Iterator[_Call]:
    for call in _calls(text):
        if re.search(r"\bfunction\s+$", _head(text, call)):
            continue
        if call.name in writers or (call.name == "call" and _commands(call)):
            yield call


def _head(text: str, call: _Call) -> str:
    return text[text.rfind("\n", 0, call.start) + 1 : call.start]


def _commands(call: _Call) -> frozenset[str]:
    named = re.findall(r"'([A-Z]+)'", call.args[0] if call.args else "")
    return WRITES.intersection(named)


def _is_statement(text: str, call: _Call) -> bool:
    return not _head(text, call).strip() and text[call.end : call.end + 1] in ("\n", "")


def writers(definitions: Mapping[str, str]) -> frozenset[str]:
    """Return the shared functions that write, themselves or through others."""
    found: set[str] = set()
    while True:
        more = {
            name
            for name, block in definitions.items()
            if name not in found and block.startswith("local function") and _writes(block, found)
        }
        if not more:
            return frozenset(found)
        found |= more


def _writes(block: str, known: set[str]) -> bool:
    return any(
        call.name in known or (call.name == "call" and WRITES.intersection(
            re.findall(r"'([A-Z]+)'", call.args[0]))) for call in _calls(block)
    )  # fmt: skip


def _without_parts(file: str, text: str, call: _Call) -> Iterator[Mutant]:
    name = call.args[0].strip("'") if call.name == "call" else call.name
    if name not in _PARTS:
        return
    first, size = _PARTS[name]
    parts = range(first, len(call.args) - size + 1, size)
    for at in parts if len(parts) > 1 or call.name != "call" else ():
        if call.args[at].startswith("...") or "unpack(" in call.args[at]:
            continue
        # The comma before it goes with it: none of these stands first.
        span = (call.spans[at - 1][1], call.spans[at + size - 1][1])
        what = f"{call.args[at]} of {_shown(text, call)}"
        yield _mutant(file, text, span, "", what)


def _answer(call: _Call, commands: frozenset[str], head: str) -> str | None:
    """Return what stands for a write whose answer is used; None when there is no such thing."""
    if call.name != "call":
        return (
            "false" if re.search(r"\b(if|elseif|not|=)\s+$", head) and call.name == "seat" else None
        )
    command, args = sorted(commands)[0], call.args
    match command:
        case "LPOP" | "RPOP":
            return f"call('LINDEX', {args[1]}, ({args[0]}) == 'RPOP' and -1 or 0)"
        case "LPUSH" | "RPUSH":
            return f"(call('LLEN', {args[1]}) + select('#', {', '.join(args[2:])}))"
        case "HINCRBY":
            return f"((tonumber(call('HGET', {args[1]}, {args[2]})) or 0) + {args[3]})"
        case "ZREM":
            return f"(call('ZSCORE', {args[1]}, {args[2]}) and 1 or 0)"
        case "SADD" | "SREM":
            is_in = f"call('SISMEMBER', {args[1]}, {args[2]})"
            return f"(({args[0]}) == 'SREM' and {is_in} or 1 - {is_in})"
        case "BITFIELD":
            return "{}"
        case _:
            return "0"


def _mutant(file: str, text: str, span: tuple[int, int], instead: str, write: str) -> Mutant:
    line = text.count("\n", 0, span[0]) + 1
    # Lines keep their numbers.
    gone = text[span[0] : span[1]].count("\n")
    return Mutant(file, line, write, text[: span[0]] + instead + "\n" * gone + text[span[1] :])


def _shown(text: str, call: _Call) -> str:
    return re.sub(r"\s+", " ", text[call.start : call.end])


def _calls(text: str) -> Iterator[_Call]:
    """Yield every call of a function, with its arguments; comments and strings are no code."""
    code = _OPAQUE.sub(lambda found: "\0" * len(found[0]), text)
    for found in _CALL.finditer(code):
        if found[1] in ("function", "if", "and", "or", "not", "return", "while", "in"):
            continue
        spans, depth, start = [], 0, found.end()
        at = found.end()
        while depth >= 0:
            mark = code[at]
            if mark in "({[":
                depth += 1
            elif mark in ")}]":
                depth -= 1
            if depth < 0 or (mark == "," and depth == 0):
                spans.append((start, at))
                start = at + 1
            at += 1
        args = tuple(text[a:b].strip() for a, b in spans)
        yield _Call(found[1], found.start(), at, args if args != ("",) else (), tuple(spans))
