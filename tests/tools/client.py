"""A user's program on top of the generated client."""

import os

from wharf_client import AuthenticatedClient
from wharf_client.api.instances import (
    create_instance,
    delete_instance,
    get_instance,
    list_instances,
    update_instance,
)
from wharf_client.models import CreateRequest, FieldErrors, Instance, ResourceType, UpdateRequest

client = AuthenticatedClient(
    base_url=os.environ["WHARF_URL"],
    token=os.environ["WHARF_KEY"],
    raise_on_unexpected_status=True,
)


def smallest(**more):
    return CreateRequest(
        resource_type=ResourceType.CONTAINER, n_vcpus=1, mem_gib=1, disk_size_gib=10, **more
    )


created = create_instance.sync(client=client, body=smallest(name="made-by-client"))
assert isinstance(created, Instance), created
assert created.owner_email == "ann@example.com"
assert created.public_ipv4 is None and created.mem_gib == 1.0

listed = list_instances.sync(client=client)
assert [i.uuid for i in listed] == [created.uuid], listed

renamed = update_instance.sync(created.uuid, client=client, body=UpdateRequest(name="renamed"))
assert isinstance(renamed, Instance) and renamed.name == "renamed", renamed
assert get_instance.sync("renamed", client=client).uuid == created.uuid

refused = create_instance.sync(client=client, body=smallest(name="renamed"))
assert isinstance(refused, FieldErrors), refused
assert refused.additional_properties == {"name": ["is already taken"]}

deleted = delete_instance.sync_detailed("renamed", client=client)
assert deleted.status_code == 204
assert list_instances.sync(client=client) == []
print("created, listed, renamed, refused, deleted")
