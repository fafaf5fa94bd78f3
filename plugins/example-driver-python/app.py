"""A driver in Python, for the engine `celld` beside it: each instance is a cell.

A driver has no state. Each function turns its call into a few requests, and the answers into a
report. A driver names a request of `driver-cells.requests.toml`, and the host writes it.
`docs/plugins.md` describes how a driver is built, installed and approved.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.survey import Surroundings
from wit_world.imports import driver_types as wit
from wit_world.imports import engine, log, types

KIND = "cells"
GIB = 1 << 30
# Delay after a start: celld then knows whether the first process is alive.
LOOK_AGAIN_MS = 300
# Time that celld has beyond the grace of a stop.
STOP_MARGIN_MS = 5_000


class Driver(exports.Driver):
    """The interface `driver`."""

    def engine_kind(self) -> str:
        return KIND

    def probe(self, node: wit.Node) -> wit.Health:
        info = expect(send("info"))
        missing = sorted({"cpu", "memory", "pids"} - set(info["limits"]))
        notes = "shares the node's kernel and /usr; no filter of system calls"
        if missing:
            notes += f"; NO LIMIT of {', '.join(missing)}"
            log.write(log.Level.WARN, f"node {node.name}: celld has no limit of {missing}")
        return wit.Health(
            version=f"{info['version']} ({notes})",
            features=wit.Features(
                containers=True,
                vms=False,
                live_resize="memory" in info["limits"],
                disk_grow=wit.DiskGrow.STOPPED,
                disk_limit=True,
                gpus=False,
                stats="memory" in info["limits"],
                network=True,
                kvm=False,
                volumes=False,
                late_attach=False,
                snapshots=wit.SnapshotKind.NONE,
                content=False,
                volume_content=wit.VolumeContent.NONE,
            ),
            n_vcpus=info["cpus"],
            mem_gib=info["memory_bytes"] // GIB,
            disk_size_gib=info["disk_bytes"] // GIB,
            gpus=[],
            boot_id=info["boot_id"],
            hint="",
        )

    def ensure(self, node: wit.Node, spec: wit.Spec) -> wit.Report:
        if spec.resource_type != types.ResourceType.CONTAINER or spec.gpu_devices:
            raise Err(types.Error_Unsupported("cells are containers without GPUs"))
        if all(image.engine_kind != KIND for image in spec.blueprint.images):
            return report(spec, wit.Phase_Failed(f"the flavor has no image for {KIND} engines"))
        if spec.blueprint.command:
            return report(spec, wit.Phase_Failed("a cell runs /init of its image, no command"))
        answer = send("create")
        if answer.status == 422:
            return report(spec, wit.Phase_Failed(message(answer)))
        found = expect(answer)
        if found["phase"] != "new":
            return report(spec, phase(found))
        # A crash may have interrupted an earlier call: the files go in again.
        expect(send("files"))
        expect(send("resize"))
        expect(send("start"))
        return report(spec, wit.Phase_Booting(), LOOK_AGAIN_MS)

    def start(self, node: wit.Node, target: wit.Target) -> wit.Report:
        found = expect(send("read"))
        if found["phase"] == "stopped" and found["disk_bytes"] < target.size.disk_size_gib * GIB:
            return report(target, wit.Phase_Growing("about to begin"), 0)
        if found["phase"] == "new":
            # Only `ensure` has the files of the user.
            return report(target, phase(found))
        expect(send("resize"))
        if found["phase"] == "running":
            return report(target, wit.Phase_Ready())
        expect(send("start"))
        return report(target, wit.Phase_Booting(), LOOK_AGAIN_MS)

    def grow(self, node: wit.Node, spec: wit.Spec) -> wit.Report:
        return report(spec, phase(expect(send("resize"))))

    def stop(self, node: wit.Node, target: wit.Target, grace_ms: int) -> wit.Report:
        answer = send("stop", grace_ms + STOP_MARGIN_MS, grace_ms=grace_ms)
        if answer.status == 404:
            return report(target, wit.Phase_Absent())
        expect(answer)
        return report(target, wit.Phase_Stopped(None))

    def resize(self, node: wit.Node, target: wit.Target) -> wit.Report:
        answer = send("resize")
        if answer.status == 409:
            why = "cannot grow while the instance runs; stop it first, then change it and restart it"
            raise Err(types.Error_Invalid(types.FieldError("disk_size_gib", why)))
        if answer.status == 507:
            used = -(-json.loads(answer.body)["memory_bytes"] // GIB)
            why = f"must be at least {used}: the instance uses that much"
            raise Err(types.Error_Invalid(types.FieldError("mem_gib", why)))
        return report(target, phase(expect(answer)))

    def delete(self, node: wit.Node, target: wit.Target) -> wit.Report:
        answer = send("delete")
        if answer.status != 404:
            expect(answer)
        return report(target, wit.Phase_Absent())

    def inspect(self, node: wit.Node, tag: wit.Tag) -> wit.Report:
        answer = send("read")
        found = {"phase": "absent"} if answer.status == 404 else expect(answer)
        return wit.Report(generation=0, phase=phase(found), again_ms=None)

    def list(self, node: wit.Node) -> list[wit.Observed]:
        found = expect(send("list"))
        return [
            wit.Observed(wit.Tag(one["instance"], one["incarnation"]), phase(one)) for one in found
        ]

    def stats(self, node: wit.Node, tag: wit.Tag, disk: bool) -> wit.Usage:
        usage = expect(send("usage"))
        return wit.Usage(
            cpu_ns=usage["cpu_ns"],
            at_ns=usage["at_ns"],
            mem_used_bytes=usage["memory_bytes"],
            disk_used_bytes=usage["disk_bytes"],
        )


class Identity(exports.Identity):
    """The interface `identity`: a store without its mark is not the one with the instances."""

    def identify(self, node: wit.Node) -> str | None:
        return expect(send("read-mark"))["mark"]

    def mark(self, node: wit.Node, mark: str) -> None:
        expect(send("mark"))


class Survey(exports.Survey):
    """The interface `survey`: an instance is placed only where its image is."""

    def look(self, node: wit.Node, images: list[str]) -> Surroundings:
        info = expect(send("info"))
        return Surroundings(
            # The networks of cells are in namespaces, beside those of the node.
            networks=[],
            missing_images=[image for image in images if image not in info["images"]],
            # Its images have no labels.
            images_without_ssh=[],
            image_contents=[],
            # /proc in a cell shows the node's CPUs and memory, and no setting changes that.
            own_view=None,
            machine=None,
        )


def phase(found: dict) -> wit.Phase:
    match found["phase"]:
        case "absent":
            return wit.Phase_Absent()
        case "new":
            return wit.Phase_Creating()
        case "running":
            return wit.Phase_Ready()
        case "stopped":
            return wit.Phase_Stopped(None)
        case other:
            raise Err(types.Error_Other(f"celld reported an unknown phase {other!r}"))


def report(call: wit.Spec | wit.Target, phase: wit.Phase, again_ms: int | None = None) -> wit.Report:
    return wit.Report(generation=call.generation, phase=phase, again_ms=again_ms)


def send(name: str, timeout_ms: int | None = None, **arguments) -> engine.Response:
    """Sends a request of the request file."""
    # The host reads `true` and `false`.
    given = [
        (argument, str(value).lower() if isinstance(value, bool) else str(value))
        for argument, value in arguments.items()
    ]
    try:
        return engine.send(engine.Request(name, given, timeout_ms))
    except Err as error:
        match error.value:
            case engine.EngineError_Refused(why):
                raise Err(types.Error_Other(f"the host refuses {name}: {why}"))
            case engine.EngineError_Unreachable(why):
                raise Err(types.Error_Unreachable(why))
            case engine.EngineError_Timeout():
                raise Err(types.Error_Unreachable(f"{name}: no answer in time"))
            case engine.EngineError_TooLarge(limit):
                raise Err(types.Error_Other(f"{name}: over {limit} bytes"))
        raise


def expect(answer: engine.Response):
    """The body of a success; any other answer becomes its error."""
    if answer.status == 200:
        return json.loads(answer.body)
    match answer.status:
        case 404:
            raise Err(types.Error_NotFound())
        case 409:
            raise Err(types.Error_Conflict(message(answer)))
    raise Err(types.Error_Other(f"celld answered {answer.status}: {message(answer)}"))


def message(answer: engine.Response) -> str:
    try:
        return str(json.loads(answer.body)["message"])
    except (KeyError, TypeError, ValueError):
        return "no message"
