package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/mad/umad"
	"fabsh/shell/session"
)

// portsCommand lists the host's own ports.
func portsCommand(p *session.Program) *cobra.Command {
	var details bool
	c := &cobra.Command{
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
device. -F umad without -C skips such ports, with a note. --details, -o json and -o csv
also have what else ibstat shows: model, hardware revision, capabilities and others.`,
		Example: `  fabsh ports
  fabsh ports --details
  fabsh ports -C mlx5_0
  fabsh ports -o json`,
		Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			if err := p.Settings.Check(); err != nil {
				return err
			}
			if details {
				if err := noTable(p, "--details shows all"); err != nil {
					return err
				}
			}
			text, err := hostPorts(p.Settings, nil, details)
			if _, err := io.WriteString(p.Console.Out(), text); err != nil {
				return err
			}
			return err
		},
	}
	c.Flags().BoolVar(&details, "details", false, "show all that is known of each port, one fact a line")
	return c
}

// hostPorts returns the list of the ports below files, the host's ports if it is nil; with
// details, as text, all their facts. The error is a fault of the host, and may come with a list.
func hostPorts(s *session.Settings, files fs.FS, details bool) (string, error) {
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
	var blocks []string
	for i := range list {
		v := &hostPort{list[i]}
		facts := v.Facts()
		for j := range facts {
			facts[j].Code = false
		}
		values[i], blocks = v, append(blocks, lang.Aligned(facts))
	}
	if details && s.Output() == lang.FormatText {
		return strings.Join(blocks, "\n"), err
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
	guid, capabilities := starlark.Value(starlark.None), starlark.Value(starlark.None)
	if p.System != 0 {
		guid = starlark.String(p.System.String())
	}
	if p.Capabilities != 0 {
		capabilities = starlark.String(fmt.Sprintf("%#08x", uint32(p.Capabilities)))
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
		{Name: "system_image_guid", Value: guid, Code: true},
		{Name: "model", Value: word(p.Model), Code: true},
		{Name: "hardware", Value: word(p.Hardware), Code: true},
		{Name: "board", Value: word(p.Board), Code: true},
		{Name: "lmc", Value: starlark.MakeInt(int(p.LMC)), Code: true},
		{Name: "capabilities", Value: capabilities, Code: true},
		{Name: "unusable", Value: word(p.Unusable)},
	}
}
