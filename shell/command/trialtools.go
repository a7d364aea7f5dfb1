package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/trial"
	"fabsh/mad"
	"fabsh/mad/umad"
	"fabsh/shell/session"
)

// hostTools are the other sources of this host: its sysfs, the tools of infiniband-diags and
// mstflint, and the file of ibdiagnet.
type hostTools struct {
	local  umad.HostPort
	pci    string // address of the local device, or ""
	budget *trial.Budget
	// run returns the output of a tool, or false without it.
	run    func(ctx context.Context, name string, args ...string) (string, bool)
	dbCSV  *fabric.Fabric // nil: without the file
	device string         // "mlx5_0"
}

// toolFolders are the folders of tools. Others, such as those of PATH, are not searched.
var toolFolders = []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"}

const (
	toolDeadline = 10 * time.Second
	toolOutput   = 256 << 10 // bytes
	// toolDatagrams is how many datagrams a run of a tool sends at most: smpquery sends one
	// request, and repeats it (libibmad DEF_RETRIES 3).
	toolDatagrams = 4
	// dbCSVPath is where ibdiagnet writes its results.
	dbCSVPath = "/var/tmp/ibdiagnet2/ibdiagnet2.db_csv"
)

// openHostTools returns the sources of the host for the port that the session uses; nil
// without a port of the host.
func openHostTools(ctx context.Context, s *session.Session, budget *trial.Budget) *hostTools {
	if s.Engine.Traits().Name != "umad" {
		return nil
	}
	port, err := s.Engine.Port()
	if err != nil {
		return nil
	}
	list, _ := umad.HostPorts(nil)
	h := &hostTools{budget: budget, device: port.Device, run: runTool}
	for _, p := range list {
		if p.PortGUID == port.PortGUID && p.Device == port.Device {
			h.local = p
		}
	}
	if target, err := filepath.EvalSymlinks(filepath.Join("/sys/class/infiniband", port.Device, "device")); err == nil {
		h.pci = filepath.Base(target)
	}
	h.dbCSV = readDBCSV(dbCSVPath)
	return h
}

// readDBCSV reads a file of ibdiagnet; nil if it is missing or invalid.
func readDBCSV(path string) *fabric.Fabric {
	f, err := session.OpenRegular(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	loaded, err := format.Load(f, path, func(string) (io.ReadCloser, error) { return nil, fs.ErrPermission })
	if err != nil {
		return nil
	}
	return loaded
}

// foreign returns what the sources report of a device that was read.
func (h *hostTools) foreign(ctx context.Context, d *trial.Device) (list []trial.Foreign) {
	if d.Node.GUID() == h.local.NodeGUID {
		list = append(list, h.sysfs(d), h.mstflint(ctx))
	}
	queries := []smpQuery{{mad.AttrNodeInfo, "nodeinfo", 0, ""}, {mad.AttrNodeDescription, "nodedesc", 0, ""}}
	if d.Node.IsSwitch() {
		queries = append(queries, smpQuery{mad.AttrSwitchInfo, "switchinfo", 0, ""})
	}
	for p := range d.Node.Ports() {
		if d.Answer(mad.AttrPortInfo, uint32(p.Num())) != nil {
			queries = append(queries, smpQuery{mad.AttrPortInfo, "portinfo", p.Num(), "port " + strconv.Itoa(p.Num())})
		}
	}
	for _, q := range queries {
		if x, ok := h.smpquery(ctx, d, q); ok {
			list = append(list, x)
		}
	}
	return append(list, h.ibdiagnet(d)...)
}

// smpQuery is a command of smpquery.
type smpQuery struct {
	attr  *mad.Attribute
	name  string
	port  int // the modifier
	place string
}

// smpquery runs smpquery along the route of a device.
func (h *hostTools) smpquery(ctx context.Context, d *trial.Device, q smpQuery) (x trial.Foreign, ok bool) {
	args := []string{"-C", h.device, "-P", strconv.Itoa(int(h.local.Num)), "-D", q.name, d.Node.Route().String()}
	if q.attr == mad.AttrPortInfo {
		args = append(args, strconv.Itoa(q.port))
	}
	if !h.budget.Reserve(toolDatagrams) {
		return x, false
	}
	out, ok := h.run(ctx, "smpquery", args...)
	return trial.Foreign{Source: "smpquery", Attr: q.attr, Modifier: uint32(q.port), Place: q.place, Fields: trial.Fields(q.attr, out)}, ok
}

// mstflint compares the firmware of the local device with its register.
func (h *hostTools) mstflint(ctx context.Context) trial.Foreign {
	x := trial.Foreign{Source: "mstflint", Attr: mad.LayoutMGIR}
	if h.pci == "" {
		return x
	}
	if out, ok := h.run(ctx, "mstflint", "-d", h.pci, "query"); ok {
		x.Fields = trial.Fields(mad.LayoutMGIR, out)
	}
	return x
}

// sysfs returns what the kernel shows of the local port.
func (h *hostTools) sysfs(d *trial.Device) trial.Foreign {
	p := &h.local
	number := func(n int) string { return strconv.Itoa(n) }
	return trial.Foreign{Source: "sysfs", Attr: mad.AttrPortInfo, Modifier: uint32(d.Port()), Place: "port " + number(d.Port()), Fields: map[string]string{
		"lid": number(int(p.LID)), "lmc": number(int(p.LMC)), "master_sm_lid": number(int(p.SMLID)), "master_sm_sl": number(int(p.SMSL)),
		"port_state": p.State.String(), "port_physical_state": p.PhysicalState.String(), "gid_prefix": strconv.FormatUint(p.GIDPrefix, 10),
	}}
}

// ibdiagnet returns what the file of ibdiagnet has of a device.
func (h *hostTools) ibdiagnet(d *trial.Device) (list []trial.Foreign) {
	if h.dbCSV == nil {
		return nil
	}
	const source = "ibdiagnet2.db_csv"
	for i := range h.dbCSV.Nodes() {
		n := &h.dbCSV.Nodes()[i]
		if n.GUID() != d.Node.GUID() {
			continue
		}
		add := func(a *mad.Attribute, port int, place string, encode func([]byte)) {
			data := make([]byte, a.Size)
			encode(data)
			list = append(list, trial.Foreign{Source: source, Attr: a, Modifier: uint32(port), Place: place, Data: data})
		}
		add(mad.AttrNodeInfo, 0, "", n.Info().Encode)
		if n.SwitchInfo() != nil {
			add(mad.AttrSwitchInfo, 0, "", n.SwitchInfo().Encode)
		}
		for p := range n.Ports() {
			if p.Info() != nil && d.Answer(mad.AttrPortInfo, uint32(p.Num())) != nil {
				add(mad.AttrPortInfo, p.Num(), "port "+strconv.Itoa(p.Num()), p.Info().Encode)
			}
		}
	}
	return list
}

// runTool runs a tool of the host, found in toolFolders: with a deadline, a limit of its
// output, and an environment that has nothing of this process.
func runTool(ctx context.Context, name string, args ...string) (out string, ok bool) {
	path, ok := findTool(name, toolFolders...)
	if !ok {
		return "", false
	}
	return runFile(ctx, path, toolDeadline, args...)
}

// runFile runs the program at path, and ends it and its children at the deadline.
func runFile(ctx context.Context, path string, deadline time.Duration, args ...string) (out string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	c := exec.CommandContext(ctx, path, args...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/"}
	c.Dir = "/"
	c.WaitDelay = time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	w := &limited{limit: toolOutput, end: cancel}
	c.Stdout = w
	if err := c.Run(); err != nil || w.over {
		return "", false
	}
	return w.b.String(), true
}

// findTool returns the path of a tool: a program that only root can change.
func findTool(name string, folders ...string) (path string, ok bool) {
	for _, folder := range folders {
		path := filepath.Join(folder, filepath.Base(name))
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || info.Mode()&0o022 != 0 {
			continue
		}
		if st, isUnix := info.Sys().(*syscall.Stat_t); isUnix && st.Uid == 0 {
			return path, true
		}
	}
	return "", false
}

// limited keeps an output up to a limit, and calls end beyond it.
type limited struct {
	b     bytes.Buffer // not embedded: its ReadFrom knows no limit
	limit int
	end   func()
	over  bool
}

func (l *limited) Write(b []byte) (int, error) {
	if l.b.Len()+len(b) > l.limit {
		l.over = true
		l.end()
		return 0, errors.New("too much output")
	}
	return l.b.Write(b)
}
