#!/bin/sh
# Slurm's HealthCheckProgram, and a prolog with the argument --prolog: judges the InfiniBand
# ports of this host. Slurm starts it with an environment of its own: the settings are in
# fabsh_health.conf beside it, if there is one, such as HEALTH_EXPECT=8xNDR, what the host
# should have.
#
# It drains the node if a port has a fault, with the first finding as the reason, and lifts this
# drain when no port has one. A drain with another reason stays as it is. As a prolog it also fails:
# then Slurm requeues the job. What could not be judged (status 3) changes nothing. All that was found
# goes to the system's log, for slurmd discards what a prolog prints.
conf=$(dirname "$0")/fabsh_health.conf
[ ! -r "$conf" ] || . "$conf"
fabsh=${FABSH:-fabsh}
report=$("$fabsh" -q --deadline 10s audit host ${HEALTH_EXPECT:+--expect "$HEALTH_EXPECT"} 2>&1 </dev/null)
status=$?
if [ "$status" -ne 0 ]; then
	printf '%s\n' "$report" >&2
	printf '%s\n' "$report" | "${LOGGER:-logger}" -t fabsh_health -p daemon.warning 2>/dev/null
fi
node=${SLURMD_NODENAME:-$(uname -n | cut -d . -f 1)}
# Who set a reason is known by its form: "fabsh: CHECK:ID text", with a check of audit host.
mine() {
	case $1 in
	'fabsh: host.'*) ;;
	*) return 1 ;;
	esac
	id=${1#fabsh: }
	case ${id%% *} in
	*:*) return 0 ;;
	esac
	return 1
}
drained() { "${SINFO:-sinfo}" -a -h -n "$node" -o %E | head -n 1; }
case $status in
0)
	[ "${1-}" != --prolog ] || exit 0 # a job starts here: the node is not drained
	mine "$(drained)" || exit 0
	exec "${SCONTROL:-scontrol}" update nodename="$node" state=undrain
	;;
1)
	# The reason is one argument, without the characters that a shell interprets in it.
	reason=$(printf '%s\n' "$report" | sed -n 's/^\(critical\|error\|warning\)  *//p' | head -n 1 | tr -cd 'A-Za-z0-9 ._:;/,-' | cut -c 1-200)
	old=$(drained)
	if [ "$old" = none ] || mine "$old"; then
		"${SCONTROL:-scontrol}" update nodename="$node" state=drain reason="fabsh: $reason"
	fi
	[ "${1-}" != --prolog ] || exit 1
	;;
esac
exit 0
