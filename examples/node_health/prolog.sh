#!/bin/sh
# Slurm's prolog: no job starts on a host whose InfiniBand ports have a fault.
exec "$(dirname "$0")/fabsh_health.sh" --prolog
