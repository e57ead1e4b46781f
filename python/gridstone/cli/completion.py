"""Completion of commands and options by the shell."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands for a shell: eval "$(gridstone completion bash)"."""
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click cannot complete for {shell}")
    click.echo(found(context.find_root().command, {}, "gridstone", "_GRIDSTONE_COMPLETE").source())


COMMANDS: tuple[click.Command, ...] = (completion,)
