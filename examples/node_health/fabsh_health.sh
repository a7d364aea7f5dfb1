#!/bin/sh
# Slurm's HealthCheckProgram, and a prolog with the argument --prolog: judges the InfiniBand
# ports of this host. Slurm starts it with an environment of its own: the settings are in
# fabsh_health.conf beside it, if there is one, such as HEALTH_EXPECT=8xNDR, what the host
# should have.
#
# As HealthCheckProgram it drains the node if a port has a fault, with the first finding as the
# reason, unless it has the reason of somebody else. As a prolog it fails: then Slurm drains the node and requeues the job. What could not
# be judged (status 3) does neither. All that was found goes to the system's log, for slurmd
# discards what a prolog prints.
conf=$(dirname "$0")/fabsh_health.conf
[ ! -r "$conf" ] || . "$conf"
fabsh=${FABSH:-fabsh}
report=$("$fabsh" -q --deadline 10s audit host ${HEALTH_EXPECT:+--expect "$HEALTH_EXPECT"} 2>&1 </dev/null)
status=$?
[ "$status" -eq 0 ] && exit 0
printf '%s\n' "$report" >&2
printf '%s\n' "$report" | "${LOGGER:-logger}" -t fabsh_health -p daemon.warning 2>/dev/null
[ "$status" -eq 1 ] || exit 0
[ "${1-}" = --prolog ] && exit 1
# The reason is one argument, without the characters that Slurm or a shell interprets.
reason=$(printf '%s\n' "$report" | sed -n 's/^\(critical\|error\|warning\)  *//p' | head -n 1 | tr -cd 'A-Za-z0-9 ._:/,-' | cut -c 1-200)
node=${SLURMD_NODENAME:-$(uname -n | cut -d . -f 1)}
# A drain of somebody else stays as it is.
case $("${SINFO:-sinfo}" -a -h -n "$node" -o %E) in
none | 'fabsh: host.'*) exec "${SCONTROL:-scontrol}" update nodename="$node" state=drain reason="fabsh: $reason" ;;
esac
