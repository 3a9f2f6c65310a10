"""`gradcheck serve`: a device for others to check over ggml's RPC."""

import ipaddress
from dataclasses import replace

import click

from gradcheck.cli import options as given
from gradcheck.cli.parameters import Endpoint
from gradcheck.cli.stdout import write_stdout
from gradcheck.model.run import DeviceInfo
from gradcheck.model.server import Server
from gradcheck.reports.exit_code import ExitCode


@click.command("serve", epilog="Example: gradcheck serve -b cpu, and elsewhere gradcheck eval -b rpc://127.0.0.1:50052")
@click.option(
    "--bind",
    type=Endpoint(),
    default="127.0.0.1:50052",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to listen; port 0 is any that is free.",
)
@click.option(
    "-b",
    "--backend",
    default="cpu",
    show_default=True,
    metavar="TARGET",
    help="The device to serve: its name, registry or type in any case.",
)
@given.THREADS
def serve_command(bind: tuple[str, int], backend: str, threads: int) -> int:
    """Serve a device over ggml's RPC, to one client at a time, until Ctrl-C."""
    from gradcheck import api

    server, device, events = api.serve(*bind, (backend,), threads)
    if not ipaddress.ip_address(server.host).is_loopback:
        _complain(f"warning: RPC has no authentication: whoever reaches {server.endpoint} commands this process")
    crashed = False
    for event in events:
        if isinstance(event, api.Crashed):
            _complain(f"the server ended, {event.reason}; it is started again")
            crashed = True
        elif not crashed:
            write_stdout([_greeting(server, device)])
    return ExitCode.GOOD


def _greeting(server: Server, device: DeviceInfo) -> str:
    target = replace(server, serves=device.name)
    return f"serving {device.name} on {server.endpoint}, for -b {target}; Ctrl-C ends it\n"


def _complain(text: str) -> None:
    click.echo(f"gradcheck: {text}", err=True)
