"""A flavor provider in Python: `slides`, a web page without SSH.

How it is built, tested and installed stands in `plugins/README.md`.
"""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.flavors import BlueprintRequest, Flavor, WebAuth
from wit_world.imports import types

# An image with a web server on this port, which checks the password in the file below.
IMAGE = "localhost/team/slides:1"
PORT = 8000
PASSWORD_FILE = "/etc/slides/password"


class Flavors(exports.Flavors):
    """The exports of the world `flavor-provider`."""

    def flavors(self) -> list[Flavor]:
        return [
            Flavor(
                name="slides",
                description="Our team's slides, in the browser.",
                resource_types=[types.ResourceType.CONTAINER],
                ssh=False,
                web=True,
                web_auth=WebAuth.NONE,
                s3_prefill=False,
                ai=False,
                gpu_aware=False,
                minimum=types.Size(n_vcpus=1, mem_gib=1, disk_size_gib=10),
            )
        ]

    def blueprint(self, request: BlueprintRequest) -> types.Blueprint:
        if request.n_gpus:
            message = "slides has no use for a GPU"
            raise Err(types.Error_Invalid(types.FieldError("gpu_model", message)))
        # The provider never sees the password: the host inserts it here.
        password = types.File(
            path=PASSWORD_FILE,
            mode=0o600,
            uid=0,
            gid=0,
            content=types.Content_Secret(types.Secret.PASSWORD),
        )
        return types.Blueprint(
            # One image for each kind of engine that supports the flavor.
            images=[types.Image(kind, IMAGE) for kind in ("docker", "simulated")],
            files=[password],
            environment=[("SLIDES_THEME", "team")],
            command=[],
            # The instance is `running` once this path answers.
            health=types.Health_Http("/"),
            ssh=False,
            web_port=PORT,
        )
