"""A tree of qdiscs, classes and filters as tc's commands."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from bakeoff import tc
from bakeoff.engines.lab import agent, match, module_qdiscs
from bakeoff.errors import RefusedError
from bakeoff.scenario.run import Class, Qdisc

# An ingress tree's handles begin here: a priority that was set for one of its classes means nothing to an egress tree.
INGRESS_HANDLE = 0x100


@dataclass(frozen=True)
class Leaf:
    """A qdisc that holds packets."""

    path: str
    """As in changes: `""` for the root, `1` for the one of class 1, `1/2` for the one of class 2 there."""
    at: str
    """`root` or `parent 1:1`."""
    handle: int
    qdisc: str


@dataclass
class Tree:
    """What stands on one device."""

    dev: str
    handle: int
    """The root's handle; further ones are counted up from it."""
    flows: dict[str, list[str]]
    """See `match.words`."""
    tx_queue_len: int
    by_modules: Collection[str] = ()
    """Kinds that the kernel has by bakeoff's modules: the agent makes and shows them."""
    root: str = ""
    """The kind of the root."""
    where: dict[str, tuple[list[str], int]] = field(default_factory=dict)
    """path -> where the qdisc hangs, in tc's words, and its handle."""
    leaves: list[Leaf] = field(default_factory=list)
    first: tuple[Leaf, ...] = ()
    """The leaves before any change."""
    renamed: bool = False
    """Whether a leaf was replaced alone, which gives it another handle."""
    moved: bool = False
    """Whether a new root put the only leaf to another place."""
    kept: dict[str, int] = field(default_factory=dict)
    """path -> handle of what takes the place of a leaf that has moved."""
    classes: dict[str, str] = field(default_factory=dict)
    """Class id of the root qdisc -> the one that it borrows from; `""` is the root."""
    taken: int = 0
    by_agent: bool = False
    """Whether it has, or had, such a queue."""

    def install(self, tree: Qdisc, place: str) -> list[list[str]]:
        """The commands that put `tree` on the device, which has no root qdisc yet."""
        self.taken = self.handle - 1
        commands = self._root(tree, place)
        self.first = tuple(self.leaves)
        return commands

    def place(self, leaf: Leaf) -> str:
        """Where one of `first` is found at any time of the run: `root`, `parent 1:1` or `handle 2:`."""
        return f"handle {leaf.handle:x}:" if self.moved else leaf.at

    def replace(self, path: str, tree: Qdisc, place: str) -> list[list[str]]:
        """The commands that put `tree` in the place of what hangs at `path`; its packets and state are lost."""
        if path == "":
            return [["tc", "qdisc", "del", "dev", self.dev, "root"], *self._new_root(tree, place)]
        parent, _ = self._find(path, place)
        position = next((i for i, leaf in enumerate(self.leaves) if leaf.path == path), None)
        if tree.classes or position is None:
            raise RefusedError(f"{place}.handle: '{path}': expected a leaf, and a replacement without classes")
        if self.moved:
            raise RefusedError(
                f"{place}.handle: '{path}': an earlier change moved this queue; expected '' (the whole tree)"
            )
        for below in [key for key in self.where if key == path or key.startswith(f"{path}/")]:
            del self.where[below]
        del self.leaves[position]
        # With a handle that was used the kernel would take it for a change of the old one.
        commands = self._add(tree, parent, path, place, verb="replace")
        self.renamed = True
        self.leaves.insert(position, self.leaves.pop())
        return commands

    def _new_root(self, tree: Qdisc, place: str) -> list[list[str]]:
        before, taken = list(self.leaves), self.taken
        if not self.moved:
            # A new root of the same handle: what hangs below keeps its name, so that sampling goes on.
            self.taken = self.handle - 1
        commands = self._root(tree, place)
        stay = [(leaf.path, leaf.at) for leaf in self.leaves] == [(leaf.path, leaf.at) for leaf in before]
        if stay and not self.moved:
            return commands
        if len(before) != 1 or len(self.leaves) != 1:
            raise RefusedError(
                f"{place}.qdisc: the new tree has {len(self.leaves)} queues instead of {len(before)}; expected the "
                "same classes, or a single queue before and after"
            )
        if self.renamed:
            raise RefusedError(
                f"{place}.qdisc: the new tree moves a queue that an earlier change replaced; expected the same classes "
                "as before"
            )
        # The only queue is in another place: it keeps its handle, by which it is sampled, and all else has new ones.
        self.moved = True
        self.kept = {self.leaves[0].path: before[0].handle}
        self.taken = taken
        return self._root(tree, place)

    def _root(self, tree: Qdisc, place: str) -> list[list[str]]:
        self.where.clear()
        self.leaves.clear()
        return self._add(tree, ["root"], "", place)

    def change(self, path: str, words: str, place: str) -> list[list[str]]:
        """`tc qdisc change`: the state is kept."""
        parent, handle = self._find(path, place)
        named = ["dev", self.dev, *parent, "handle", f"{handle:x}:"]
        return [[self._program(words), "qdisc", "change", *named, *words.split()]]

    def change_class(self, number: str, words: str, place: str) -> list[list[str]]:
        """`tc class change`: the state is kept."""
        if number not in self.classes:
            raise RefusedError(
                f"{place}.id: unknown class '{number}'; expected one of: {', '.join(self.classes) or 'none'}"
            )
        root = f"{self.where[''][1]:x}:"
        if self.root == "prio":
            raise RefusedError(f"{place}.id: bands of prio have no parameters")
        named = ["dev", self.dev, "parent", f"{root}{self.classes[number]}", "classid", f"{root}{number}", self.root]
        return [["tc", "class", "change", *named, *words.split()]]

    def _program(self, words: str) -> str:
        program = module_qdiscs.program(words, self.by_modules)
        self.by_agent |= program == agent.NAME
        return program

    def _find(self, path: str, place: str) -> tuple[list[str], int]:
        if path not in self.where:
            known = ", ".join(repr(key) for key in self.where) or "none, without a queue here"
            raise RefusedError(f"{place}.handle: no qdisc at {path!r}; expected one of {known}")
        return self.where[path]

    def _add(self, tree: Qdisc, parent: list[str], path: str, place: str, verb: str = "add") -> list[list[str]]:
        kind, words = tc.kind(tree.qdisc), tree.qdisc.split()[1:]
        if not kind:
            raise RefusedError(f"{place}.qdisc: empty; expected tc syntax, such as 'fq_codel'")
        handle = self._handle(path)
        self.where[path] = (parent, handle)
        named = ["dev", self.dev, *parent, "handle", f"{handle:x}:"]
        commands = [[self._program(kind), "qdisc", verb, *named, kind, *words]]
        if path == "":
            self.root = kind
            self.classes = {cls.id: cls.parent or "" for cls in tree.classes}
        if tree.classes:
            return commands + self._add_classes(tree, handle, kind, path, place)
        # Where there is a child, its parent's counters are those of the whole.
        self.leaves.append(Leaf(path, " ".join(parent), handle, tree.qdisc))
        if tree.child is not None:
            leaves = len(self.leaves)
            commands += self._add(tree.child, ["parent", f"{handle:x}:1"], _below(path, "child"), f"{place}.child")
            del self.leaves[leaves:]
        return commands

    def _handle(self, path: str) -> int:
        if path in self.kept:
            return self.kept[path]
        self.taken += 1
        return self.taken

    def _add_classes(self, tree: Qdisc, handle: int, kind: str, path: str, place: str) -> list[list[str]]:
        commands: list[list[str]] = []
        filters: list[list[str]] = []
        on = ["dev", self.dev, "parent", f"{handle:x}:"]
        inner = {cls.parent for cls in tree.classes if cls.parent}
        if unknown := inner - {cls.id for cls in tree.classes}:
            raise RefusedError(f"{place}.classes: unknown parent class '{min(unknown)}'")
        # A class is added below one that is there, whatever the order of the document.
        ordered = sorted(enumerate(tree.classes), key=lambda entry: _depth(tree, entry[1], place))
        for index, cls in ordered:
            here = f"{place}.classes[{index}]"
            name = f"{handle:x}:{cls.id}"
            if kind != "prio":
                above = ["dev", self.dev, "parent", f"{handle:x}:{cls.parent or ''}"]
                commands.append(["tc", "class", "add", *above, "classid", name, kind, *cls.class_.split()])
            if cls.id in inner:
                if cls.child is not None or cls.filters:
                    raise RefusedError(f"{here}: other classes borrow from it; expected neither filters nor child")
                continue
            # What htb would make by itself is not shown by tc, and so cannot be sampled.
            child = cls.child or Qdisc(qdisc=f"pfifo limit {self.tx_queue_len}")
            commands += self._add(child, ["parent", name], _below(path, cls.id), f"{here}.child")
            for number, wanted in enumerate(cls.filters):
                what = match.words(wanted, self.flows, f"{here}.filters[{number}]")
                order = ["protocol", "ip", "prio", str(len(filters) + 1)]
                filters.append(["tc", "filter", "add", *on, *order, "u32", *what, "flowid", name])
        return commands + filters


def _below(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _depth(tree: Qdisc, cls: Class, place: str) -> int:
    """How many classes stand above `cls`."""
    parents = {other.id: other.parent for other in tree.classes}
    depth, above = 0, cls.parent
    while above is not None:
        depth += 1
        if depth > len(parents):
            raise RefusedError(f"{place}.classes: class '{cls.id}' is its own ancestor")
        above = parents.get(above)
    return depth
