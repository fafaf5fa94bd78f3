"""A user's program on top of the generated client: the main path of the conformance suite."""

import os
import time

from wharf_client import AuthenticatedClient
from wharf_client.api.instances import (
    create_instance,
    delete_instance,
    get_instance,
    list_instances,
    update_instance,
)
from wharf_client.api.lifecycle import restart_instance, stop_instance
from wharf_client.api.ports import add_port, remove_port
from wharf_client.api.usage import get_stats
from wharf_client.models import (
    CpuTier,
    CreateRequest,
    Detail,
    FieldErrors,
    InsufficientResources,
    Instance,
    PortRequest,
    ResourceType,
    State,
    UpdateRequest,
)

client = AuthenticatedClient(
    base_url=os.environ["WHARF_URL"],
    token=os.environ["WHARF_KEY"],
    raise_on_unexpected_status=True,
)
DEADLINE = 120


def smallest(kind=ResourceType.CONTAINER, **more):
    return CreateRequest(**{"resource_type": kind, "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10, **more})


def wait_for(name, state):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        instance = get_instance.sync(name, client=client)
        if instance.state == state:
            return instance
        assert instance.state != State.ERROR, instance
        time.sleep(0.02)
    raise AssertionError(f"{name} is not {state}")


# Create, get, list, rename.
created = create_instance.sync(client=client, body=smallest(name="made-by-client"))
assert isinstance(created, Instance), created
assert created.owner_email == "ann@example.com" and created.state == State.PROVISIONING
assert created.public_ipv4 is None and created.mem_gib == 1.0 and created.wan_ports == []

listed = list_instances.sync(client=client)
assert [i.uuid for i in listed] == [created.uuid], listed

renamed = update_instance.sync(created.uuid, client=client, body=UpdateRequest(name="renamed"))
assert isinstance(renamed, Instance) and renamed.name == "renamed", renamed
assert get_instance.sync("renamed", client=client).uuid == created.uuid

# Resize, usage, stop, restart.
wait_for("renamed", State.RUNNING)
resized = update_instance.sync("renamed", client=client, body=UpdateRequest(n_vcpus=2, mem_gib=2))
assert isinstance(resized, Instance) and (resized.n_vcpus, resized.mem_gib) == (2, 2.0), resized
assert get_stats.sync("renamed", client=client).mem_total_gib == 2.0

stopped = stop_instance.sync("renamed", client=client)
assert stopped.state == "shut_off" and stopped.uuid == created.uuid, stopped
assert wait_for("renamed", State.EXITED).wan_ssh_port == created.wan_ssh_port
refused = stop_instance.sync("renamed", client=client)
assert isinstance(refused, Detail) and "exited" in refused.detail, refused
restarted = restart_instance.sync("renamed", client=client)
assert restarted.state == "running", restarted
wait_for("renamed", State.RUNNING)

# Ports of a virtual machine.
vm = create_instance.sync(client=client, body=smallest(ResourceType.VM, name="machine"))
assert isinstance(vm, Instance) and vm.public_ipv4 and vm.wan_ports == [22], vm
wait_for("machine", State.RUNNING)
assert add_port.sync("machine", client=client, body=PortRequest(port=8080)).wan_ports == [22, 8080]
assert get_instance.sync("machine", client=client).wan_ports == [22, 8080]
assert remove_port.sync("machine", client=client, body=PortRequest(port=8080)).wan_ports == [22]
fixed = remove_port.sync("machine", client=client, body=PortRequest(port=22))
assert isinstance(fixed, FieldErrors) and "port" in fixed.additional_properties, fixed
container = add_port.sync("renamed", client=client, body=PortRequest(port=80))
assert isinstance(container, Detail), container

# Errors: every wrong field, a taken name, a shortage, an unknown instance, a wrong key.
wrong = create_instance.sync(client=client, body=smallest(n_vcpus=0, mem_gib=0))
assert isinstance(wrong, FieldErrors), wrong
assert set(wrong.additional_properties) == {"n_vcpus", "mem_gib"}, wrong
taken = create_instance.sync(client=client, body=smallest(name="renamed"))
assert isinstance(taken, FieldErrors), taken
assert taken.additional_properties == {"name": ["is already taken"]}
# The node with this tier has 32 GiB.
short = create_instance.sync(
    client=client, body=smallest(mem_gib=40, cpu_tier=CpuTier.HIGH_PERFORMANCE)
)
assert isinstance(short, InsufficientResources), short
assert short.detail.bottleneck == ["mem_gib"], short
assert short.detail.nearest_available["mem_gib"] == 32, short
assert get_instance.sync("nothing", client=client).detail == "Instance not found."
stranger = AuthenticatedClient(base_url=os.environ["WHARF_URL"], token="wharf_0_0")
assert isinstance(list_instances.sync(client=stranger), Detail)

# Delete.
for instance in list_instances.sync(client=client):
    deleted = delete_instance.sync_detailed(instance.name, client=client)
    assert deleted.status_code == 204
assert list_instances.sync(client=client) == []
assert get_instance.sync_detailed("renamed", client=client).status_code == 404
print("created, listed, renamed, resized, stopped, restarted, opened ports, refused, deleted")
