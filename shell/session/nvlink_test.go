package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// smi is what nvidia-smi -q prints of a GPU.
func smi(cluster, clique string) string {
	return fmt.Sprintf("GPU 00000008:01:00.0\n    Product Name                          : NVIDIA GB200\n    Fabric\n        State                             : Completed\n        Status                            : Success\n        CliqueId                          : %s\n        ClusterUUID                       : %s\n", clique, cluster)
}

func TestNVLinkDomain(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"a domain", "cat <<'.'\n" + smi("8e1c4a2b-0d5f-4b7e-9c3a-000000000001", "7") + smi("8e1c4a2b-0d5f-4b7e-9c3a-000000000001", "7") + ".\n", "8e1c4a2b-0d5f-4b7e-9c3a-000000000001.7"},
		{"no domain", "cat <<'.'\n" + smi("N/A", "N/A") + ".\n", ""},
		{"no fabric", "echo 'GPU 0'; echo '    Product Name : NVIDIA A100'", ""},
		{"a domain of zeros", "cat <<'.'\n" + smi("00000000-0000-0000-0000-000000000000", "0") + ".\n", ""},
		{"two domains", "cat <<'.'\n" + smi("a", "7") + smi("b", "7") + ".\n", "! nvidia-smi -q: line 14: GPUs with ClusterUUID a and b"},
		{"half a domain", "echo ' CliqueId : 7'", "! nvidia-smi -q: no ClusterUUID or no CliqueId; want both, of nvidia-smi -q"},
		{"rubbish", `printf ' ClusterUUID : a;b\033[2J\n CliqueId : 7\n'`, `! nvidia-smi -q: invalid domain "a;b\x1b[2J.7"; want ClusterUUID.CliqueID, of at most 63 letters, digits, . _ and -`},
		{"a failure", "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9", `! nvidia-smi -q: exit status 9: "NVIDIA-SMI has failed because it could not communicate with ..."`},
		{"a flood", "yes", "! nvidia-smi -q: more than 8 MB of output"},
		{"one that hangs", "sleep 60", "! nvidia-smi -q: timed out after 300ms"},
		{"a child that hangs", "sleep 60 & echo x", "! nvidia-smi -q: timed out after 300ms"},
		{"other options", `[ "$*" = -q ] || echo "$*" >&2; [ "$*" = -q ]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "nvidia-smi")
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+c.script), 0o755); err != nil {
				t.Fatal(err)
			}
			limit := 20 * time.Second
			if strings.Contains(c.name, "hangs") {
				limit = 300 * time.Millisecond
			}
			got, err := domainBy(t.Context(), path, limit)
			if err != nil {
				got = "! " + err.Error()
			}
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestNVLinkPath: relative entries of PATH, directories, and files that cannot run are not used.
func TestNVLinkPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name string, mode os.FileMode, domain string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("#!/bin/sh\ncat <<'.'\n"+smi(domain, "1")+".\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("nvidia-smi", 0o755, "here")
	write("bin/nvidia-smi", 0o755, "below")
	write("plain/nvidia-smi", 0o644, "plain")
	write("good/nvidia-smi", 0o755, "good")
	if err := os.MkdirAll("dir/nvidia-smi", 0o755); err != nil {
		t.Fatal(err)
	}
	list := func(dirs ...string) string { return strings.Join(dirs, string(filepath.ListSeparator)) }
	for path, want := range map[string]string{
		list("", ".", "bin", "./bin", "../"+filepath.Base(dir)):                                       "",
		list(".", filepath.Join(dir, "dir"), filepath.Join(dir, "plain"), filepath.Join(dir, "good")): "good.1",
		"": "",
	} {
		t.Setenv("PATH", path+string(filepath.ListSeparator)+"/nonexistent")
		if strings.Contains(want, "good") {
			t.Setenv("PATH", path+string(filepath.ListSeparator)+"/bin"+string(filepath.ListSeparator)+"/usr/bin")
		}
		if got, err := NVLinkDomain(t.Context()); got != want || err != nil {
			t.Errorf("PATH %q: %q, %v; want %q", path, got, err, want)
		}
	}
}
