"""Loads Jupyter AI's slow extensions beside the working page.

Their imports take seconds, and Jupyter answers nothing before all of its extensions are loaded. Run
as a program during the build of an image, this module installs itself in their place.
"""

import asyncio
import importlib
import json
import py_compile
import shutil
import sys
import sysconfig
from pathlib import Path

EXTENSIONS = [
    "jupyter_ai_acp_client",
    "jupyter_ai_jupyternaut",
    "jupyter_ai_litellm",
    "jupyter_server_mcp",
]


def _jupyter_server_extension_points():
    return [{"module": __name__}]


def _load_jupyter_server_extension(server):
    pass


async def _start_jupyter_server_extension(server):
    # The loop keeps no task alive.
    server.wharf_late = asyncio.create_task(load(server))


async def load(server):
    manager = server.extension_manager
    for name in EXTENSIONS:
        # The user has enabled or disabled it, or installed another version, which enables itself.
        if name in manager.extensions:
            continue
        try:
            await asyncio.to_thread(importlib.import_module, name)
        except Exception:
            server.log.warning("%s cannot be imported", name, exc_info=True)
            continue
        if manager.add_extension(name, enabled=True):
            manager.link_extension(name)
            manager.load_extension(name)
            await manager.start_extension(name)
    # Extensions change it when they are linked, for objects that do not exist yet.
    server.contents_manager.update_config(server.config)


def install():
    packages = Path(sysconfig.get_path("purelib"))
    module = shutil.copy(__file__, packages)
    py_compile.compile(module, doraise=True)
    enabled = Path(sys.prefix, "etc/jupyter/jupyter_server_config.d")
    for name in EXTENSIONS:
        enabled.joinpath(f"{name}.json").unlink()
    own = {"ServerApp": {"jpserver_extensions": {"wharf_late": True}}}
    enabled.joinpath("wharf_late.json").write_text(json.dumps(own))


if __name__ == "__main__":
    install()
