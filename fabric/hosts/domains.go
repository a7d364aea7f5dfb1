package hosts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"fabsh/fabric"
	"fabsh/fabric/plural"
)

// Domains are the NVLink domains of hosts, by name of the host in lower case and without its domain
// name: "ClusterUUID.CliqueID", as nvidia-smi -q shows both. Hosts with one domain share NVLink
// switches, such as those of a rack of GB200 NVL72.
type Domains map[string]string

// DomainLabel is the label of Kubernetes nodes that has the domain; NVIDIA's GPU feature discovery
// sets it (k8s-dra-driver-gpu, README: nvidia.com/gpu.clique).
const DomainLabel = "nvidia.com/gpu.clique"

// MaxDomains is the maximum length of a file of domains, in bytes.
const MaxDomains = 256 << 20

// shortHost returns a name of a host as Domains has it.
func shortHost(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return strings.ToLower(name)
}

// NameIn returns the one of names that is a host, whatever its case and domain name; "" if none is, or
// several are.
func NameIn(names []string, host string) (found string) {
	for _, name := range names {
		if shortHost(name) == shortHost(host) {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// ReadDomains reads the domains of hosts: lines "HOSTS DOMAIN", with HOSTS in Slurm's notation; the
// output of nvidia-smi -q or fabsh audit host of several hosts, as pdsh and clush write it, "HOST: LINE"; or of
// kubectl get nodes -o json, where label is the domain.
func ReadDomains(text []byte, label string) (Domains, error) {
	if len(text) > MaxDomains {
		return nil, fmt.Errorf("more than %d MB", MaxDomains>>20)
	}
	d := Domains{}
	var err error
	if trimmed := strings.TrimSpace(string(text)); strings.HasPrefix(trimmed, "{") {
		err = d.readNodes([]byte(trimmed), label)
	} else {
		err = d.readLines(trimmed)
	}
	if err == nil && len(d) == 0 {
		err = errors.New("no host has a domain; want lines HOSTS DOMAIN, nvidia-smi -q by host, or kubectl get nodes -o json")
	}
	return d, err
}

// LocalDomain returns the domain in the output of nvidia-smi -q of one host; "": the host is in none.
func LocalDomain(text []byte) (string, error) {
	const host = "-" // no name of a host
	var lines strings.Builder
	for line := range strings.Lines(string(text)) {
		lines.WriteString(host + ": " + line)
	}
	d := Domains{}
	if err := d.readLines(lines.String()); err != nil {
		return "", errors.New(strings.Replace(err.Error(), fmt.Sprintf("host %q: ", host), "", 1))
	}
	return d[host], nil
}

// add adds a host. The error is that it has two domains, or that one is invalid.
func (d Domains) add(host, domain string) error {
	if !domainForm().MatchString(domain) {
		return fmt.Errorf("host %.60q: invalid domain %.80q; want ClusterUUID.CliqueID, of at most 63 letters, digits, . _ and -", host, domain)
	}
	name := shortHost(host)
	if old, ok := d[name]; ok && old != domain {
		return fmt.Errorf("host %.60q: two domains, %s and %s", host, old, domain)
	}
	d[name] = domain
	return nil
}

var domainForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
})

func (d Domains) readNodes(text []byte, label string) error {
	var doc struct {
		Items []struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("invalid JSON: %w", err)
	}
	for _, n := range doc.Items {
		if domain := n.Metadata.Labels[label]; domain != "" {
			if err := d.add(n.Metadata.Name, domain); err != nil {
				return err
			}
		}
	}
	if len(d) == 0 {
		return fmt.Errorf("no node has the label %s; give --domain-label", label)
	}
	return nil
}

// fabricLine matches a line of nvidia-smi -q, with its host.
var fabricLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\S+): +(ClusterUUID|CliqueId|CliqueID) *: *(\S+)`)
})

// auditLine matches the line of fabsh audit host with the domain of a host.
var auditLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\S+: +fabric +host (\S+): .*; NVLink domain (\S+)$`)
})

func (d Domains) readLines(text string) error {
	type fabricOf struct{ cluster, clique string }
	smi := map[string]*fabricOf{}
	var order []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if m := fabricLine().FindStringSubmatch(line); m != nil {
			if m[3] == "N/A" {
				continue
			}
			x := smi[m[1]]
			if x == nil {
				x = new(fabricOf)
				smi[m[1]], order = x, append(order, m[1])
			}
			part := &x.clique
			if m[2] == "ClusterUUID" {
				part = &x.cluster
			}
			if *part != "" && *part != m[3] {
				return fmt.Errorf("line %d: host %.60q: GPUs with %s %s and %s", n, m[1], m[2], *part, m[3])
			}
			*part = m[3]
			continue
		}
		if m := auditLine().FindStringSubmatch(line); m != nil {
			if err := d.add(m[1], m[2]); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			continue
		}
		words := strings.Fields(line)
		switch {
		case line == "" || line[0] == '#', len(words) > 0 && strings.HasSuffix(words[0], ":"): // other lines of nvidia-smi
			continue
		case len(words) != 2:
			return fmt.Errorf("line %d: want HOSTS DOMAIN, got %.60q", n, line)
		}
		hosts, err := Expand(words[0])
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		for _, host := range hosts {
			if err := d.add(host, words[1]); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	for _, host := range order {
		x := smi[host]
		if x.cluster == "" || x.clique == "" {
			return fmt.Errorf("host %.60q: no ClusterUUID or no CliqueId; want both, of nvidia-smi -q", host)
		}
		if strings.Trim(x.cluster, "0-") == "" {
			continue // this host is in no domain
		}
		if err := d.add(host, x.cluster+"."+x.clique); err != nil {
			return err
		}
	}
	return nil
}

// SplitByDomain makes a group of level 0 of the hosts of each domain, below the group of their leaves:
// all levels above are one higher. Hosts without a domain are a group with the name of their leaves.
// The error is that a domain has hosts in two groups of leaves.
func (g *Groups) SplitByDomain(d Domains) error {
	at, names := map[string]*Group{}, map[string]bool{}
	var visit func(list []*Group)
	visit = func(list []*Group) {
		for _, x := range list {
			names[uniqueForm(x.Name)] = true
			visit(x.Groups)
		}
	}
	visit(g.Roots)
	var without []string
	var split func(x *Group) error
	split = func(x *Group) error {
		x.Level++
		if x.Level > 1 {
			x.Hosts = nil
			for _, y := range x.Groups {
				if err := split(y); err != nil {
					return err
				}
				x.Hosts = append(x.Hosts, y.Hosts...)
			}
			return nil
		}
		below := map[string]*Group{}
		var rest *Group
		for _, host := range x.Hosts {
			domain := d[shortHost(host)]
			if domain == "" {
				without = append(without, host)
				if rest == nil {
					rest = &Group{Name: unused(x.Name+"-none", names), Switches: x.Switches}
				}
				rest.Hosts = append(rest.Hosts, host)
				continue
			}
			if other := at[domain]; other != nil && other != x {
				return fmt.Errorf("NVLink domain %s: hosts at two groups of leaves, %s and %s", domain, other.Name, x.Name)
			}
			at[domain] = x
			if below[domain] == nil {
				below[domain] = &Group{Name: unused(strings.ReplaceAll(domain, ".", "-"), names), Switches: x.Switches}
				x.Groups = append(x.Groups, below[domain])
			}
			below[domain].Hosts = append(below[domain].Hosts, host)
		}
		slices.SortFunc(x.Groups, func(a, b *Group) int {
			return cmp.Or(fabric.CompareNames(a.Hosts[0], b.Hosts[0]), strings.Compare(a.Name, b.Name))
		})
		if rest != nil {
			x.Groups = append(x.Groups, rest)
		}
		x.Hosts, x.Switches = nil, nil
		for _, y := range x.Groups {
			x.Hosts = append(x.Hosts, y.Hosts...)
		}
		return nil
	}
	for _, x := range g.Roots {
		if err := split(x); err != nil {
			return err
		}
	}
	g.Domains = true
	if len(at) == 0 {
		return errors.New("no host of the fabric has a domain in the file")
	}
	if without != nil {
		g.Notes = append(g.Notes, fmt.Sprintf("%s without an NVLink domain: one group for each group of leaves: %s", plural.Count(len(without), "host", "hosts"), Fold(without)))
	}
	return nil
}

// uniqueForm returns the form in which names of groups must be unique.
func uniqueForm(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

// unused returns the name, shortened to 63 bytes and with a number if another group has it.
func unused(name string, taken map[string]bool) string {
	const most = 63
	name = strings.TrimRight(name[:min(len(name), most)], "-_")
	for i, base := 2, name; taken[uniqueForm(name)]; i++ {
		suffix := fmt.Sprintf("-%d", i)
		name = strings.TrimRight(base[:min(len(base), most-len(suffix))], "-_") + suffix
	}
	taken[uniqueForm(name)] = true
	return name
}
