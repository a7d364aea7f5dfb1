package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad/umad"
	"fabsh/shell/session"
)

// portsCommand lists the host's own ports.
func portsCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "ports",
		Short: "List the RDMA devices of this host, and their ports",
		Long: `List the RDMA devices of this host, and their ports, as ibstat and ibstatus do:
network (infiniband, roce, iwarp), states, width and speed, LIDs, GUIDs. It sends
nothing and opens no device. -C and -P limit the list to a device or a port.

role is the kind of management datagrams that the port sends: smi for subnet
management, gsi for all others. If an adapter with several planes (XDR) has them on two
devices, pair is the other one, and planes are the numbers of the planes. default marks
the port that fabsh uses without -C and -P. unusable is the reason that a port cannot be
used: it is not InfiniBand, ib_umad does not serve it, or this user may not open its
device. -F umad without -C skips such ports, with a note. -o json and -o csv have the rate
and the node GUID too.`,
		Example: `  fabsh ports
  fabsh ports -C mlx5_0
  fabsh ports -o json`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if err := p.Settings.Check(); err != nil {
				return err
			}
			text, err := hostPorts(p.Settings, nil)
			if _, err := io.WriteString(p.Console.Out(), text); err != nil {
				return err
			}
			return err
		},
	}
}

// hostPorts returns the list of the ports below files, the host's ports if it is nil.
// The error is a fault of the host, and may come with a list.
func hostPorts(s *session.Settings, files fs.FS) (string, error) {
	list, err := umad.HostPorts(files)
	if errors.Is(err, umad.ErrNoDevice) {
		err = fmt.Errorf("%w; %s", err, session.WithoutDevice)
	}
	if err != nil {
		err = &session.HostError{Err: err}
	}
	if list == nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(p umad.HostPort) bool {
		return s.CA != "" && p.Device != s.CA || s.Port.IsSet && int(p.Num) != s.Port.Value
	})
	if len(list) == 0 && err == nil {
		return "", &session.HostError{Err: fmt.Errorf("unknown port %s; leave -C and -P out to list all", portNamed(s))}
	}
	values := make([]starlark.Value, len(list))
	for i := range list {
		values[i] = &hostPort{list[i]}
	}
	text, renderError := renderTable(s, io.Discard, starlark.NewList(values), "port")
	if renderError != nil {
		return "", renderError
	}
	return text, err
}

// portNamed returns the name of the port that -C and -P select.
func portNamed(s *session.Settings) string {
	device, num := "*", "*"
	if s.CA != "" {
		device = s.CA
	}
	if s.Port.IsSet {
		num = fmt.Sprint(s.Port.Value)
	}
	return device + "/" + num
}

// hostPort is a port of the host, as a value to print.
type hostPort struct{ p umad.HostPort }

var _ lang.Factual = (*hostPort)(nil)

func (v *hostPort) Type() string          { return "host_port" }
func (v *hostPort) Freeze()               {}
func (v *hostPort) Truth() starlark.Bool  { return true }
func (v *hostPort) Hash() (uint32, error) { return lang.HashBytes([]byte(v.String())), nil }
func (v *hostPort) Schema() string        { return "host_port/1" }
func (v *hostPort) String() string        { return fmt.Sprintf("%s/%d", v.p.Device, v.p.Num) }

func (v *hostPort) Facts() []lang.Fact {
	p := &v.p
	word := func(s string) starlark.Value {
		if s == "" {
			return starlark.None
		}
		return starlark.String(s)
	}
	rate := starlark.Value(starlark.None)
	if p.Gbps > 0 {
		rate = starlark.Float(p.Gbps)
	}
	planes := starlark.Value(starlark.None)
	if len(p.Planes) > 0 {
		list := make(starlark.Tuple, len(p.Planes))
		for i, n := range p.Planes {
			list[i] = starlark.MakeInt(n)
		}
		planes = list
	}
	return []lang.Fact{
		{Name: "port", Value: starlark.String(v.String())},
		{Name: "default", Value: starlark.Bool(p.Default)},
		{Name: "network", Value: word(p.Link)},
		{Name: "state", Value: starlark.String(p.State.String())},
		{Name: "physical_state", Value: starlark.String(p.PhysicalState.String())},
		{Name: "width", Value: word(p.Width)},
		{Name: "speed", Value: word(p.Speed)},
		{Name: "rate_gbps", Value: rate, Code: true},
		{Name: "lid", Value: starlark.MakeInt(int(p.LID))},
		{Name: "sm_lid", Value: starlark.MakeInt(int(p.SMLID))},
		{Name: "role", Value: word(p.Role)},
		{Name: "pair", Value: word(p.Pair)},
		{Name: "planes", Value: planes},
		{Name: "umad", Value: word(p.Umad)},
		{Name: "firmware", Value: word(p.Firmware)},
		{Name: "port_guid", Value: starlark.String(p.PortGUID.String())},
		{Name: "node_guid", Value: starlark.String(p.NodeGUID.String()), Code: true},
		{Name: "unusable", Value: word(p.Unusable)},
	}
}
